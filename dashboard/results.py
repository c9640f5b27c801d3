"""What a bulk operation did to each job, as a file: streamed, however long it is."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from itertools import chain

from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_GET

from dashboard import reads
from dashboard.formats import as_cell
from dashboard.overall import UNREACHABLE, trouble_of
from dashboard.permissions import VIEW, requires
from jobs import api
from jobs.api import BulkNotFound


@require_GET
@requires(VIEW)
def results(request: HttpRequest) -> HttpResponseBase:
    """CSV: the job, and ``done``, ``waits`` or why it was not done."""
    id = request.GET.get("id", "")[:100]
    try:
        reads.bulk_operation(id)
    except BulkNotFound:
        raise Http404 from None
    except UNREACHABLE as error:
        return HttpResponse(trouble_of(error)[0], status=503, content_type="text/plain; charset=utf-8")
    rows = ((job, api.redaction.shown_text(what)) for job, what in api.bulk.results(id))
    response = StreamingHttpResponse(_lines(chain([("job", "result")], rows)), content_type="text/csv; charset=utf-8")
    name = "".join(filter(str.isalnum, id))
    response["Content-Disposition"] = f'attachment; filename="bulk-{name}.csv"'
    return response


class _Echo:
    """What the CSV writer writes to: it gives each line back."""

    def write(self, line: str) -> str:
        return line


def _lines(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    writer = csv.writer(_Echo())
    for job, what in rows:
        yield writer.writerow((as_cell(job), as_cell(what)))
