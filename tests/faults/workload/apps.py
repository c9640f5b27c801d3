from django.apps import AppConfig


class WorkloadConfig(AppConfig):
    name = "tests.faults.workload"
    label = "fault_workload"
    verbose_name = "Fault workload"

    def ready(self) -> None:
        from tests.faults.workload import observe

        observe.install()
