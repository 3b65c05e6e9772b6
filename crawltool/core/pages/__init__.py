"""What does a body say?

`content` chooses the reader by media type: `htmlpage` (on `html`, `links`, `maintext`, `text`), `sitemaps`, `plaintext`. Each
gives a `reading`. `charset` makes bytes text; `simhash` and `neardup` compare pages.
"""
