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
        method, response = ask(job)
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
    job.report_response(response.url, response.status, response.header("content-type"))
    if response.status in (429, 503):
        job.report_rate_limit(urlsplit(response.url).hostname, response.status, response.header("retry-after"))
    about = {"status": response.status, "final_url": response.url, "redirects": len(response.redirects)}
    return f"HTTP {response.status} {response.reason}".rstrip(), about


def ask(job):
    """Many servers answer HEAD wrongly or not at all; then only GET is the truth. Its body is not read."""
    try:
        response = fetch.request(job, job.url, method="HEAD", share=0.5)
        if response.status < 400 or response.status in (404, 410, 429, 503):
            return "HEAD", response
    except hook.Unreachable:
        raise
    except hook.Failed as error:
        if error.output_json is None or error.output_json.get("redirects"):
            raise  # HEAD was answered; where it led is the trouble
    return "GET", fetch.request(job, job.url, method="GET")


def joined(pairs):
    """Names in lower case; a name sent twice has its values joined."""
    result = {}
    for name, value in pairs:
        name = name.lower()
        separator = "\n" if name == "set-cookie" else ", "
        result[name] = result[name] + separator + value if name in result else value
    return result


hook.run("headers", headers)
