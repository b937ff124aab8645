"""Web pages, crawls, sitemaps, feeds and Hacker News."""
