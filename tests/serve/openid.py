"""An OpenID provider with a second factor, and a site whose members it lets in: Django's packages, in their own words.

    openid.py provider|site OWN_URL OTHER_URL DIRECTORY

Cookies are kept by host, so both have one of their own."""

import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

import django
from django.conf import settings
from django.core.management import call_command
from django.http import HttpResponse
from django.urls import include, path

ROLE, OWN, OTHER, PLACE = *sys.argv[1:4], Path(sys.argv[4])
PROVIDER = ROLE == "provider"
TITLE = "<title>{% block title %}{% endblock %} {{ wizard.steps.current }}</title>"
BARE = "<!doctype html>" + TITLE + "{% block content %}{% endblock %}"
SHARED = ["auth", "contenttypes", "sessions"]
OWN_APPS = {
    True: [
        "django_otp",
        "django_otp.plugins.otp_totp",
        "django_otp.plugins.otp_static",
        "two_factor",
        "oauth2_provider",
    ],
    False: ["mozilla_django_oidc"],
}
settings.configure(
    DEBUG=True,
    SECRET_KEY="a key of this test",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF="__main__",
    USE_TZ=True,
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": PLACE / f"{ROLE}.sqlite"}},
    INSTALLED_APPS=[f"django.contrib.{name}" for name in SHARED] + OWN_APPS[PROVIDER],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        *(["django_otp.middleware.OTPMiddleware"] if PROVIDER else []),
    ],
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "OPTIONS": {
                "context_processors": ["django.template.context_processors.request"],
                "loaders": [
                    (
                        "django.template.loaders.locmem.Loader",
                        {"two_factor/_base.html": BARE, "oauth2_provider/base.html": BARE},
                    ),
                    "django.template.loaders.app_directories.Loader",
                ],
            },
        }
    ],
    AUTHENTICATION_BACKENDS=[
        "django.contrib.auth.backends.ModelBackend",
        *([] if PROVIDER else ["mozilla_django_oidc.auth.OIDCAuthenticationBackend"]),
    ],
    LOGIN_URL="two_factor:login" if PROVIDER else "/",
    OAUTH2_PROVIDER={
        "OIDC_ENABLED": True,
        "OAUTH2_VALIDATOR_CLASS": "claims.Validator",
        "SCOPES": {"openid": "to know you", "email": "to write to you"},
    },
    OIDC_RP_CLIENT_ID="site",
    OIDC_RP_CLIENT_SECRET="a secret of this test that both know",
    OIDC_RP_SIGN_ALGO="HS256",
    OIDC_USE_PKCE=True,
    OIDC_OP_AUTHORIZATION_ENDPOINT=OTHER + "/o/authorize/",
    OIDC_OP_TOKEN_ENDPOINT=OTHER + "/o/token/",
    OIDC_OP_USER_ENDPOINT=OTHER + "/o/userinfo/",
    LOGIN_REDIRECT_URL="/done",
)
if PROVIDER:
    (PLACE / "claims.py").write_text(
        "from oauth2_provider.oauth2_validators import OAuth2Validator\n\n\n"
        "class Validator(OAuth2Validator):\n"
        "    oidc_claim_scope = None\n\n"
        "    def get_additional_claims(self, request):\n"
        "        return {'email': request.user.email}\n"
    )
    sys.path.insert(0, str(PLACE))
django.setup()

if PROVIDER:
    from two_factor.urls import urlpatterns as two_factor

    urlpatterns = [
        path("", include(two_factor)),
        path("o/", include("oauth2_provider.urls", namespace="oauth2_provider")),
    ]
else:
    from django.contrib.auth.decorators import login_required

    def page(body):
        return lambda request: HttpResponse(f"<!doctype html><title>{request.path}</title>{body}")

    WINDOW = "open('/oidc/authenticate/', '', 'width=500,height=500')"
    urlpatterns = [
        path("", page(f'<button autofocus onclick="{WINDOW}">Sign in</button>')),
        path("oidc/", include("mozilla_django_oidc.urls")),
        path("done", page("<script>opener.location = '/members/start'; close()</script>")),
        path("members/<name>", login_required(lambda request, name: page("<h1>For members</h1>")(request))),
    ]

call_command("migrate", verbosity=0)
if PROVIDER:
    from django.contrib.auth.models import User
    from django_otp.plugins.otp_totp.models import TOTPDevice
    from oauth2_provider.models import Application

    anna = User.objects.create_user("anna", "anna@site.test", os.environ["PASSWORD"])
    TOTPDevice.objects.create(user=anna, name="default", key=os.environ["TOTP_KEY"])
    Application.objects.create(
        client_id="site",
        client_secret=settings.OIDC_RP_CLIENT_SECRET,
        hash_client_secret=False,
        client_type="confidential",
        authorization_grant_type="authorization-code",
        algorithm="HS256",
        redirect_uris=OTHER + "/oidc/callback/",
    )
call_command("runserver", urlsplit(OWN).netloc, use_reloader=False, verbosity=0)
