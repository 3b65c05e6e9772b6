"""Other people's clients, as bare as they go: URLs on stdin, a line `200` for each page read. Run by tests.bench.fetch.

    python -m tests.bench.fetch_peers httpx|aiohttp|scrapy IN_FLIGHT CA_FILE < URLS

A new connection for each page, nothing is kept, parsed or written.
"""

from __future__ import annotations

import ssl
import sys
from collections.abc import Iterator
from typing import Any

SITE = "h1.site.test"  # in the server's certificate
NAME = {"sni_hostname": SITE}
CLOSE = {"Connection": "close", "User-Agent": "bench"}


def with_httpx(urls: Iterator[str], in_flight: int, ca_file: str) -> None:
    import asyncio

    import httpx

    async def main() -> None:
        limits = httpx.Limits(max_connections=in_flight, max_keepalive_connections=0)
        context = ssl.create_default_context(cafile=ca_file)
        async with httpx.AsyncClient(limits=limits, verify=context, headers=CLOSE, timeout=60) as client:

            async def work() -> None:
                for url in urls:
                    answer = await client.get(url, extensions=NAME)
                    print(answer.status_code)

            await asyncio.gather(*(work() for _ in range(in_flight)))

    asyncio.run(main())


def with_aiohttp(urls: Iterator[str], in_flight: int, ca_file: str) -> None:
    import asyncio

    import aiohttp

    async def main() -> None:
        context = ssl.create_default_context(cafile=ca_file)
        connector = aiohttp.TCPConnector(limit=in_flight, force_close=True, ssl=context)
        async with aiohttp.ClientSession(connector=connector, headers=CLOSE) as client:

            async def work() -> None:
                for url in urls:
                    async with client.get(url, server_hostname=SITE) as answer:
                        await answer.read()
                        print(answer.status)

            await asyncio.gather(*(work() for _ in range(in_flight)))

    asyncio.run(main())


def with_scrapy(urls: Iterator[str], in_flight: int, ca_file: str) -> None:
    import scrapy
    from scrapy.crawler import CrawlerProcess

    class Spider(scrapy.Spider):
        name = "bench"

        async def start(self) -> Any:
            for url in urls:
                yield scrapy.Request(url, headers=CLOSE, dont_filter=True)

        def parse(self, response: Any, **_: Any) -> None:
            print(response.status)

    settings = {"CONCURRENT_REQUESTS": in_flight, "CONCURRENT_REQUESTS_PER_DOMAIN": in_flight, "LOG_LEVEL": "ERROR"}
    process = CrawlerProcess(settings | {"ROBOTSTXT_OBEY": False, "DOWNLOAD_DELAY": 0, "TELNETCONSOLE_ENABLED": False})
    process.crawl(Spider)
    process.start()


if __name__ == "__main__":
    _, client, number, ca_file = sys.argv
    lines = (line.strip() for line in sys.stdin)
    {"httpx": with_httpx, "aiohttp": with_aiohttp, "scrapy": with_scrapy}[client](lines, int(number), ca_file)
