"""All operations of the API, gathered."""

from __future__ import annotations

from dashboard.api import dead, jobs, pools, scheduler, schedules, workers, workflows
from dashboard.api.service import Api, Strict, answered

ROUTERS = {
    "/jobs": jobs.router,
    "/dlq": dead.router,
    "/pools": pools.router,
    "/scheduler": scheduler.router,
    "/workers": workers.router,
    "/schedules": schedules.router,
    "/workflows": workflows.router,
    "/stats": scheduler.stats,
}

api = Api(title="Mainspring", version="1", openapi_url=None, docs_url=None, parser=Strict())
for prefix, router in ROUTERS.items():
    router.add_decorator(answered)
    api.add_router(prefix, router)
