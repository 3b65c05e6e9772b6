"""Every bound, with its unit and the reason for it. crawltool(1) prints LIMITS from this file.

A bound that a user may set is an option and has its default there; what is here is structure.
"""

KIB, MIB = 1024, 1024 * 1024

RECORD_BYTES_MAX = 1 * MIB  # a line; readers keep one line in memory
OUTCOME_BYTES_MAX = 768 * KIB  # links beyond go ahead as candidates; leaves room for page, dup and seq
OUTCOME_HEADERS_BYTES_MAX = 32 * KIB  # as JSON; the archive has all of them
TEXT_BYTES_MAX = 900 * KIB  # a page's text in its own line, flagged when cut
TAGS_BYTES_MAX = 1 * KIB  # a user's tags travel with every record of the URL
LINK_TEXT_CHARS_MAX = 200  # anchor text; enough to name a link in a report
LINKS_MAX = 60_000  # links of one document: a sitemap has 50,000, a page that has more is a trap
TITLE_CHARS_MAX = 1000
DESCRIPTION_CHARS_MAX = 2000
URL_BYTES_MAX = 64 * KIB  # parsed at all; --max-url (2048) decides what is queued
HTML_DEPTH_MAX = 512  # nesting of elements: lexbor's time grows with its square
HTML_NODES_MAX = 300_000
HTML_FORMATTING_MAX = 16  # open <b>, <font> … at a time: each is built again in every later paragraph
HTML_LISTS_MAX = 32  # lists in lists; text indents them
HTML_SHAPES_MAX = 20_000  # self-closed elements of drawings that are believed not to nest
HTML_OPTIONS_MAX = 1000  # beyond, text is extracted without the options of lists
HTML_TAGS_TRUSTED = 2000  # a page with fewer start tags is cheap however they nest: its depth is not counted
HTML_TAGS_BELIEVED = 10_000  # with more start tags, only end tags that close the last one count
HTML_ATTRIBUTES_MAX = 4000  # of one tag: lexbor's time grows with its square
LANGUAGE_CHARS_MIN = 60  # a shorter text tells no language
LANGUAGE_CHARS_MAX = 4000  # more does not tell more
BODY_PARSED_BYTES_MAX = 16 * MIB  # of a stored page, packed as it is; --parse-bytes counts unpacked bytes
SIMHASH_WORDS_MIN = 30  # fewer words: all such pages look alike, only equal bytes count
SIMHASH_CHARS_MAX = 256 * KIB

ROBOTS_BYTES_MAX = 500 * KIB  # RFC 9309 section 2.5: at least 500 kibibytes
ROBOTS_LINE_BYTES_MAX = 8 * 2083 - 1  # of one line this much is read, as by Google's parser
ROBOTS_RULES_BYTES_MAX = 640 * KIB  # of our group, as JSON: it crosses a pipe in an outcome
ROBOTS_SITEMAPS_BYTES_MAX = 64 * KIB  # as JSON, in the same outcome
ROBOTS_HOPS_MAX = 5  # RFC 9309 section 2.3.1.2
ROBOTS_TTL_S_MIN = 1800  # refetched no sooner than min(this, --robots-ttl), whatever Cache-Control says
ROBOTS_TTL_S_MAX = 86_400  # RFC 9309 section 2.4
CRAWL_DELAY_S_MAX = 300  # a longer Crawl-delay refuses the host, with that reason
SITEMAPS_MAX = 1000  # sitemaps that one robots.txt may name
PATTERN_CHARS_MAX = 2048  # of --include and --exclude
HOST_CHARS_MAX = 255  # of a name in a ban list; DNS has no longer one
BAN_FILE_BYTES_MAX = 256 * MIB  # about 10 million names
CONTROL_BANS_MAX = 100_000  # of `crawltool control block`; longer lists belong into a ban file
CONTROL_HOSTS_MAX = 1_000_000  # hosts with settings of their own
CONTROL_DELAY_S_MAX = 86_400  # of `crawltool control slow`
CHANNELS_MAX = 256  # folders of inbox.d that are read; each holds three descriptors
SITEMAP_BYTES_MAX = 50 * MIB  # sitemaps.org
SITEMAP_URLS_MAX = 50_000  # sitemaps.org
REDIRECT_HOPS_MAX = 10

RETRY_AFTER_S_MAX = 86_400
BACKOFF_S_MAX = 86_400
PACE_S_MAX = 3600.0  # the longest rest that a host of bad reputation gets for it alone
FORGIVEN_S = 1800  # a host that was quiet so long after its last rest begins both ladders anew
COMPLAINING_HOSTS = 3  # so many hosts of one address that say 429 or 503 …
COMPLAINING_S = 600  # … within this time: the address rests, too
HOST_FAILURES_MAX = 5  # the fifth in a row closes the host until the next run (law 11)
LOST_MAX = 5  # expired leases of one URL, then failed(lost)
RETURNED_WAIT_S_MAX = 64  # 1 s, doubling
RETURNED_MAX = 16  # times in a row that fetch may give a URL back, then failed(returned) (law 11)
BUSY_MAX = 10  # 429 and 503 answers of one URL on a host that is well otherwise, then failed(busy) (law 11)
ADDRESS_TTL_S = 300  # getaddrinfo tells no TTL
ADDRESS_TTL_S_MIN = 30  # shorter ones would be too old before their host may be asked (law 11)
ADDRESS_TTL_S_MAX = 86_400
ADDRESS_RETRY_S = 5  # a temporary failure is remembered this long: all links of a page ask for the same name
ADDRESSES_OF_A_HOST_MAX = 16  # told to the frontier, which keeps them with the host
ADDRESSES_MAX = 100_000  # names in the address cache, about 40 MB
DNS_STUCK_FACTOR = 3  # threads stuck in the system's resolver, in look-ups at once
LEASE_S = 600
LEASE_TOTALS_MIN = 3  # a lease is at least so many total timeouts, else 78

DECODED_BYTES_MAX = 64 * MIB  # any content decoding, whole
DECODED_RATIO_MAX = 200  # output to input, beyond 1 MiB of output
DECODED_LAYERS_MAX = 3
DECODED_MEMBERS_MAX = 1000  # gzip members of one body: empty ones cost time and give nothing
ZSTD_WINDOW_BYTES_MAX = 8 * MIB  # RFC 9659
CHARSET_SEARCH_BYTES = 64 * KIB  # looked at for a late meta, and to guess by the bytes
HEADER_BYTES_MAX = 256 * KIB  # response header block
BODY_IN_MEMORY_BYTES = 256 * KIB  # more goes to an unlinked temporary file
SNIFF_BYTES = 4 * KIB  # kept of a skipped type

SEGMENT_RECORDS_MAX = 1000  # a spool segment closes at the first of these
SEGMENT_BYTES_MAX = 4 * MIB
SEGMENT_AGE_S = 0.2
TARGET_SEGMENT_RECORDS_MAX = 64  # a dead fetcher's segment is set aside until its leases expire
SPOOL_RESCAN_S = 2.0  # a lost poke costs at most this
SPOOL_DEPTH_MAX = 256  # segments waiting in a forward spool; the inbox has none
PIPE_READ_BYTES = 1 * MIB

LOG_FRAME_AGE_S = 5.0  # crawltool log -f is never further behind
LOG_FRAME_BYTES = 1 * MIB
LOG_FILE_BYTES = 64 * MIB  # unpacked once at start to find the last seq: 0.3 s
WARC_FILE_BYTES = 1_000_000_000  # IIPC guideline
WARC_WRITE_BYTES = 4 * MIB  # members of a group are joined up to this for one write
WARC_FILES_OPEN_MAX = 16  # descriptors a reader keeps
WARC_RECORD_BYTES_MAX = 128 * MIB  # a record unpacked into memory; more is cut and flagged
DIGESTS_MAP_BYTES = 256 * MIB  # address space, not disk; doubled when nearly full
DIGESTS_ROOM_BYTES = 64 * MIB  # what one group may add: 1,000 keys touch a few thousand pages
TEXT_BATCHES_MAX = 32  # batches dedup holds for a text whose outcome comes later: links of one page may lie between
FRAME_READ_BYTES = 64 * KIB  # of a file of zstd frames at a time: frames are smaller, and the rest is copied
FRAME_TORN_BYTES_MAX = 64 * MIB  # a torn last frame is shorter; longer is damage
SIGNATURES_MAP_BYTES = 2048 * MIB  # address space, not disk; doubled when nearly full
SIGNATURES_ROOM_BYTES = 1024 * MIB  # what may be added between two saves
SIGNATURES_UNSAVED_MAX = 2000  # rows applied again at start after a crash: 0.1 s
SIGNATURES_BUCKET_MAX = 4096  # pages compared per SimHash block; the mean at 100 M pages is 1,526
SIGNATURES_HITS_MAX = 64  # near pages looked up to find one of another URL
SEEN_LAYER_KEYS = 2_000_000  # first Bloom layer: 2.4 MB at 1 %
SEEN_GROWTH = 8
SEEN_SNAPSHOT_KEYS = 1_000_000  # new keys between snapshots: 1 s of replay at start
FREE_BYTES_MIN = 5_000_000_000  # --min-free: left for everybody else on the disk …
FREE_SHARE_MIN = 0.05  # … or this share of it, whichever is less
GRACE_S = 8.0  # after the first signal
PIPE_BYTES = 1 * MIB  # asked of the kernel for the pipes of crawl; its own limit may be lower
DRAIN_S_MAX = 60.0  # after which crawl kills a stage that does not end: dedup may have much to write
GRACE_MARGIN_S = 4.0  # beyond the grace: the stages behind fetch settle what it gave back; then a hard stop
