#!/usr/bin/env -S python3 -IB
"""The response headers of a page, its final status, and the redirects on the way.

headers/headers.json: {url, final_url, status, reason, content_type, headers, redirects, method}
"""

import sys
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "_lib"))
import fetch
import hook


def headers(job):
    try:
        method, response = "HEAD", fetch.request(job, job.url, method="HEAD")
        if response.status >= 400 and response.status not in (404, 410, 429, 503):
            # Many servers answer HEAD wrongly; only GET is the truth then. Its body is not read.
            method, response = "GET", fetch.request(job, job.url, method="GET")
    except hook.Failed as error:
        job.write_json("headers.json", {"url": job.url, "error": error.reason, **(error.output_json or {})})
        raise
    job.write_json(
        "headers.json",
        {
            "url": job.url,
            "final_url": response.url,
            "status": response.status,
            "reason": response.reason,
            "content_type": response.header("content-type"),
            "headers": joined(response.headers),
            "redirects": response.redirects,
            "method": method,
        },
    )
    if response.status in (429, 503):
        job.report_rate_limit(urlsplit(response.url).hostname, response.status, response.header("retry-after"))
    about = {"status": response.status, "final_url": response.url, "redirects": len(response.redirects)}
    return f"HTTP {response.status} {response.reason}".rstrip(), about


def joined(pairs):
    """Names in lower case; a name sent twice has its values joined."""
    result = {}
    for name, value in pairs:
        name = name.lower()
        separator = "\n" if name == "set-cookie" else ", "
        result[name] = result[name] + separator + value if name in result else value
    return result


hook.run("headers", headers)
