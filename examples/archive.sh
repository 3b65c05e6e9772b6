#!/bin/sh
# What an archive is good for, without the web:  examples/archive.sh CRAWL URL [OPTION]...
#
# Checks the archive of a crawl, indexes it for a replay tool, writes its pages as files, and crawls it once more as if it
# were the network (say, with other patterns or another parser). CRAWL is the directory of a crawl, URL where it began.
# Leaves CRAWL.cdxj, CRAWL.files/ and CRAWL.again/ beside it.
set -eu

crawl=$1
shift

crawltool warc verify -C "$crawl"
crawltool warc index -C "$crawl" > "$crawl.cdxj"
crawltool warc cat -C "$crawl" --tree "$crawl.files" '*'
crawltool crawl -C "$crawl.again" --from-warc "$crawl/warc" --delay 0 "$@"
