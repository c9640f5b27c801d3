"""A workflow: four years of weather are worked out beside each other, compared, and sent to readers when somebody has
looked at them (or nobody has for a while). Whatever happens, the end is written down; a failure is reported.
"""

from __future__ import annotations

from random import Random

from jobs import Workflow
from samples import images
from samples.jobs import build_report, compare_years, process_image, send_email

NAME = "weather-digest"
YEARS = (2012, 2013, 2014, 2015)
PATIENCE_SECONDS = 45.0
"""So long the digest waits for somebody to approve it; then it goes out unseen."""

DOOMED_SHARE = 0.2
"""So many of the runs that the sample stream starts ask for a year of which there are no readings."""


def weather_digest(random: Random) -> Workflow:
    """One digest, now and then with a year that cannot be had: then nobody is mailed but the operators."""
    years = (*YEARS, 2016) if random.random() < DOOMED_SHARE else YEARS
    pictures = [name for name in images.sources() if not name.startswith("interrupted")]
    flow = Workflow(NAME)
    reports = flow.map("report", build_report, [{"year": year, "resamples": 2_000} for year in years])
    thumbnails = flow.map("picture", process_image, [{"source": name, "sizes": [64, 256]} for name in pictures])
    compared = flow.add("compare", compare_years, depends_on=reports)
    question = "Are these years fit to be sent to the readers?"
    approved = flow.approval("approve", question, depends_on=compared, timeout=PATIENCE_SECONDS, on_timeout="continue")
    mail = {"to": "readers@example.com", "subject": "The weather, year by year", "body": compared.result("summary")}
    sent = flow.add("send", send_email, mail, depends_on=[approved, compared, thumbnails])
    failed = {"to": "operators@example.com", "subject": "The weather digest could not be made"}
    flow.add("alarm", send_email, failed, on_failure=[reports, thumbnails, compared], join="any")
    flow.add("log", send_email, {"to": "archive@example.com", "subject": "A digest has ended"}, on_complete=sent)
    return flow
