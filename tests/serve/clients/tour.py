"""What a program does with the client that openapi-python-client generates. mypy --strict checks it, too."""

import sys
import time
from datetime import datetime
from typing import TypeVar
from uuid import UUID

import httpx
from holdfast_client import AuthenticatedClient
from holdfast_client.api.default import (
    add_crawl,
    change_snapshot,
    crawl,
    list_crawls,
    list_files,
    list_snapshots,
    read_text,
    remove_snapshot,
    search,
    snapshot,
)
from holdfast_client.models import (
    AddCrawlBody,
    Added,
    Changed,
    ChangeSnapshotBody,
    Crawl,
    CrawlPage,
    CrawlStatus,
    FilePage,
    FoundPage,
    Problem,
    Snapshot,
    SnapshotPage,
    SnapshotStatus,
)
from holdfast_client.types import UNSET

T = TypeVar("T")


def of(kind: type[T], answer: object) -> T:
    assert isinstance(answer, kind), answer
    return answer


def sealed(client: AuthenticatedClient, id: UUID) -> Crawl:
    """Follows a crawl to its end."""
    end = time.monotonic() + 60
    while (one := of(Crawl, crawl.sync(str(id), client=client))).status != CrawlStatus.SEALED:
        assert time.monotonic() < end, one
        time.sleep(0.2)
    return one


def main(address: str, token: str, url: str, many: UUID) -> None:
    client = AuthenticatedClient(base_url=address, token=token)

    bad = of(Problem, add_crawl.sync(client=client, body=AddCrawlBody(urls=["http://", url, "ftp://x/"])))
    assert bad.code == "urls_invalid" and bad.errors and bad.request_id
    assert [one.field for one in bad.errors] == ["urls/0", "urls/2"]

    added = of(Added, add_crawl.sync(client=client, body=AddCrawlBody(urls=[url], tags=["a, b"])))
    assert added.id is not None
    done = sealed(client, added.id)
    assert (done.total, done.succeeded) == (1, 1) and isinstance(done.sealed_at, datetime)
    assert of(CrawlPage, list_crawls.sync(client=client, until=done.created_at.isoformat())).items

    (page,) = of(SnapshotPage, list_snapshots.sync(client=client, crawl=added.id)).items
    assert page.status == SnapshotStatus.SEALED and page.tags == ["a, b"] and page.url == url
    assert "lighthouse" in of(str, read_text.sync(str(page.id), client=client))
    files = {file.path: file for file in of(FilePage, list_files.sync(str(page.id), client=client)).items}
    file = files["page/notes.txt"]
    assert file.url and httpx.get(file.url).text == "plain\n" and file.size == 6

    (found,) = of(FoundPage, search.sync(client=client, q="lighthouse", crawl=added.id)).items
    assert found.id == page.id and found.rank > 0
    tagged = change_snapshot.sync(str(page.id), client=client, body=ChangeSnapshotBody(add_tags=["read"]))
    assert of(Changed, tagged).changed
    assert of(Snapshot, snapshot.sync(str(page.id), client=client)).tags == ["a, b", "read"]
    assert of(Changed, remove_snapshot.sync(str(page.id), client=client)).changed
    assert of(Problem, snapshot.sync(str(page.id), client=client)).status == 404

    urls: set[str] = set()
    cursor: UUID | None = None
    while True:
        after = UNSET if cursor is None else cursor
        rows = of(SnapshotPage, list_snapshots.sync(client=client, crawl=many, limit=1000, cursor=after))
        urls.update(row.url for row in rows.items)
        cursor = rows.cursor
        if cursor is None:
            break
    print(len(urls))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], UUID(sys.argv[4]))
