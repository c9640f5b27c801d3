"""The audit log; limits and autoscaling of pools."""

import django.core.validators
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='AuditEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
                ('who', models.CharField(help_text="User name, or the system's user behind a command or a program.", max_length=200)),
                ('source', models.CharField(choices=[('command', 'Command line'), ('admin', 'Admin'), ('dashboard', 'Dashboard'), ('api', 'HTTP API'), ('python', 'Program')], max_length=16, verbose_name='from')),
                ('action', models.CharField(db_index=True, help_text='Noun and verb: pool.pause.', max_length=64)),
                ('target', models.CharField(blank=True, db_index=True, help_text='Name or id of what was changed.', max_length=300)),
                ('reason', models.TextField(blank=True)),
                ('before', models.JSONField(blank=True, null=True)),
                ('after', models.JSONField(blank=True, null=True)),
            ],
            options={
                'verbose_name': 'audit entry',
                'verbose_name_plural': 'audit entries',
                'ordering': ['-id'],
                'default_permissions': ('view',),
                'base_manager_name': 'objects',
            },
        ),
        migrations.AddField(
            model_name='pool',
            name='autoscale',
            field=models.CharField(choices=[('off', 'Off: the slots are as set above'), ('dry_run', 'Dry run: decisions are recorded and not carried out'), ('on', 'On: the slots follow the wait')], default='off', max_length=8),
        ),
        migrations.AddField(
            model_name='pool',
            name='cooldown_seconds',
            field=models.FloatField(default=30.0, help_text='At least so long between two changes.', validators=[django.core.validators.MinValueValidator(0.0), django.core.validators.MaxValueValidator(604800.0)]),
        ),
        migrations.AddField(
            model_name='pool',
            name='max_pending',
            field=models.PositiveIntegerField(blank=True, help_text='With so many jobs waiting, new ones are refused. Retries and children of workflows are not.', null=True),
        ),
        migrations.AddField(
            model_name='pool',
            name='max_running',
            field=models.PositiveIntegerField(blank=True, help_text='Jobs of this pool that run at a time on all hosts together. Empty: as many as there are slots.', null=True),
        ),
        migrations.AddField(
            model_name='pool',
            name='max_slots',
            field=models.PositiveSmallIntegerField(default=20, help_text='Never more slots per worker process.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(1000)]),
        ),
        migrations.AddField(
            model_name='pool',
            name='min_slots',
            field=models.PositiveSmallIntegerField(default=1, help_text='Never fewer slots per worker process.', validators=[django.core.validators.MaxValueValidator(1000)]),
        ),
        migrations.AddField(
            model_name='pool',
            name='target_wait_seconds',
            field=models.FloatField(default=5.0, help_text='How long a job should wait for its start.', validators=[django.core.validators.MinValueValidator(0.001), django.core.validators.MaxValueValidator(604800.0)]),
        ),
        migrations.AddField(
            model_name='pool',
            name='tolerance_seconds',
            field=models.FloatField(default=1.0, help_text='Off by no more than this, nothing is changed.', validators=[django.core.validators.MinValueValidator(0.0), django.core.validators.MaxValueValidator(604800.0)]),
        ),
        migrations.AlterField(
            model_name='pool',
            name='slots',
            field=models.PositiveSmallIntegerField(blank=True, help_text='Jobs that one worker process runs at a time in this pool. Empty: as the settings say; 0: none. Running workers follow within a second.', null=True, validators=[django.core.validators.MaxValueValidator(1000)]),
        ),
        migrations.AddConstraint(
            model_name='pool',
            constraint=models.CheckConstraint(condition=models.Q(('min_slots__lte', models.F('max_slots'))), name='jobs_pool_bounds_in_order', violation_error_message='The least number of slots must not be above the most.'),
        ),
    ]
