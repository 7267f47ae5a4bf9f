"""Settings of Django's tests: two databases of the server that PGHOST and PGPORT name."""

import os

DATABASES = {
    alias: {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": os.environ["PGHOST"],
        "PORT": os.environ["PGPORT"],
        "USER": os.environ["PGUSER"],
        "NAME": os.environ["PGDATABASE"],
        "TEST": {"NAME": os.environ["PGDATABASE"] + suffix},
    }
    for alias, suffix in (("default", "_test"), ("other", "_other_test"))
}
SECRET_KEY = "tests"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
TEST_RUNNER = "outcomes.DjangoRunner"
