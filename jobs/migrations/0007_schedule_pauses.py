from django.db import migrations, models


def carry_over(apps, schema_editor):
    for row in apps.get_model("jobs", "Schedule").objects.exclude(pause_began=None).exclude(pause_ended=None):
        row.pauses = [[row.pause_began.isoformat(), row.pause_ended.isoformat()]]
        row.save(update_fields=["pauses"])


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0006_schedules_of_workflows'),
    ]

    operations = [
        migrations.AddField(
            model_name='schedule',
            name='pauses',
            field=models.JSONField(blank=True, default=list, editable=False, help_text='Begin and end of pauses that are over, oldest first.'),
        ),
        migrations.RunPython(carry_over, migrations.RunPython.noop),
        migrations.RemoveField(model_name='schedule', name='pause_began'),
        migrations.RemoveField(model_name='schedule', name='pause_ended'),
    ]
