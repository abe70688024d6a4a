"""A shop of django-oscar with some lamps, each with pictures and a price: shop.py PORT DIRECTORY"""

import io
import sys
from pathlib import Path

import django
import oscar.defaults
from django.apps import apps
from django.conf import settings
from django.conf.urls.static import static
from django.core.files.images import ImageFile
from django.core.management import call_command
from django.urls import include, path
from PIL import Image

PORT, PLACE = sys.argv[1], Path(sys.argv[2])
PARTS = {
    "": "analytics checkout address shipping catalogue communication partner basket payment offer order customer search"
    " voucher wishlists dashboard",
    "catalogue.": "reviews",
    "dashboard.": "reports users orders catalogue offers partners pages ranges reviews vouchers communications shipping",
}


def configuration(before, name):
    kind = name.title() + (before.strip(".").title() if before == "dashboard." else "") + "Config"
    return f"oscar.apps.{before}{name}.apps.{'CatalogueReviewsConfig' if before == 'catalogue.' else kind}"


settings.configure(
    DEBUG=True,
    SECRET_KEY="a key of this test",
    ALLOWED_HOSTS=["*"],
    SITE_ID=1,
    ROOT_URLCONF="__main__",
    USE_TZ=True,
    STATIC_URL="/static/",
    MEDIA_URL="/media/",
    MEDIA_ROOT=PLACE / "media",
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": PLACE / "shop.sqlite"}},
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    HAYSTACK_CONNECTIONS={"default": {"ENGINE": "haystack.backends.simple_backend.SimpleEngine"}},
    INSTALLED_APPS=[
        *(
            f"django.contrib.{name}"
            for name in "admin auth contenttypes sessions messages staticfiles sites flatpages".split()
        ),
        "oscar.config.Shop",
        *(configuration(before, name) for before, names in PARTS.items() for name in names.split()),
        *"widget_tweaks haystack treebeard django_tables2 sorl.thumbnail".split(),
    ],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
        "oscar.apps.basket.middleware.BasketMiddleware",
    ],
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {
                "context_processors": [
                    *(f"django.template.context_processors.{name}" for name in ("request", "i18n", "media", "static")),
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages",
                    "oscar.apps.search.context_processors.search_form",
                    "oscar.apps.checkout.context_processors.checkout",
                    "oscar.core.context_processors.metadata",
                ]
            },
        }
    ],
    **{name: value for name, value in vars(oscar.defaults).items() if name.startswith("OSCAR")},
)
django.setup()
urlpatterns = [
    path("i18n/", include("django.conf.urls.i18n")),
    *static("/media/", document_root=PLACE / "media"),
    path("", include(apps.get_app_config("oscar").urls[0])),
]


def fill():
    from oscar.test.factories import create_product

    for number in range(3):
        lamp = create_product(title=f"Lamp {number}", price=10, num_in_stock=5, upc=f"lamp{number}")
        lamp.description = "<p>It stands on harbourstone.</p>"
        lamp.save()
        for side in range(3):
            file = io.BytesIO()
            Image.new("RGB", (900, 700), (80 * number, 80 * side, 120)).save(file, "JPEG")
            lamp.images.create(original=ImageFile(file, name=f"lamp{number}{side}.jpg"), display_order=side)


call_command("migrate", verbosity=0)
fill()
call_command("runserver", f"127.0.0.1:{PORT}", use_reloader=False)
