"""What a project remembers after some months, what people say to an agent all day, and what they ask about it."""

from __future__ import annotations

from foreword.models import Memory

DAY = 86_400.0

# kind | title | body | files. A grocery shop that never was: server, web page, app, warehouse, and their keeping.
_REMEMBERED = """
decision | Money is stored as integer cents | floats lost a cent in the refund report | shop/money.py
decision | Use PostgreSQL advisory locks for the picking queue | Redis locks expired while a picker was on break | warehouse/queue.py
decision | Checkout retries the bank transport twice, then gives up | a third try charged customers double | shop/checkout.py shop/transport.py
decision | Images are resized in the browser before upload | the server ran out of memory at 40 megapixels | web/src/upload.ts
decision | Sessions live in signed cookies, not in Redis | one moving part less; logout works by a revocation list | shop/auth/session.py
decision | OAuth callback accepts only exact redirect URIs | a wildcard let an attacker take the code | shop/auth/oauth.py
decision | Feature switches are rows in the database, not environment variables | support must flip them at night | shop/switches.py
decision | The mobile app talks GraphQL, partners get REST | partners asked for curl examples | shop/graphql/schema.py
decision | Delivery slots are computed in the customer's time zone | daylight saving moved the Sunday slots by an hour | delivery/slots.py
decision | Search uses trigram similarity instead of Elasticsearch | 9,000 products need no cluster | shop/search.py
decision | Coupons stack only within one campaign | marketing lost 11 percent margin in March | shop/coupons.py
decision | Emails are rendered from MJML at build time | Outlook broke our hand-written tables | mail/templates/welcome.mjml
decision | Keep Python 3.11 until the label printer driver supports 3.13 | the vendor wheel is cp311 only | pyproject.toml
decision | Terraform state moves to an S3 bucket with locking | two people applied at once | infra/backend.tf
decision | Pickers scan EAN barcodes with the camera, not with Bluetooth scanners | scanners lost pairing in the cold room | app/lib/scanner.dart
decision | Prices are snapshotted into the order line | the price changed between cart and payment | shop/orders.py
decision | Kafka is not introduced; the outbox table is polled each second | 40 orders a minute need no broker | shop/outbox.py
decision | Cart expires after seven days | stock reservations blocked the shelf | shop/cart.py
decision | Rate limiting happens in nginx, not in Django | the bots cost us a worker each | infra/nginx.conf
decision | The Android app minimum is API level 26 | three percent of users were below | app/android/build.gradle
decision | Refunds are always made to the original payment method | auditors asked for it | shop/refunds.py
decision | Product descriptions are stored as Markdown and sanitised with nh3 | bleach is unmaintained | shop/products.py
decision | Driver locations are kept for 24 hours only | privacy officer, GDPR | delivery/tracking.py
decision | One Docker image for web and workers, started with different commands | builds took twice as long | Dockerfile
decision | Locust replaces k6 for load tests | the team writes Python | load/locustfile.py
pattern | Wrap a Stripe webhook in an idempotency key | Stripe delivers the same event twice; keep the event id with a unique constraint | shop/stripe_webhook.py
pattern | Backfill a big table in batches of 5,000 with a sleep | one UPDATE locked the orders table for nine minutes | shop/migrations
pattern | Freeze the clock in slot tests with time-machine | slot tests failed every night at 23:00 | tests/test_slots.py
pattern | Do not catch asyncio.CancelledError in consumers | shutdown hung for thirty seconds | warehouse/consumer.py
pattern | Read the feature switch once per request | a switch flipped in the middle of a checkout | shop/switches.py
pattern | Dart isolates for barcode decoding | the camera preview stuttered on old phones | app/lib/scanner.dart
pattern | Put N+1 guards around the order list with select_related | 311 queries on one page | shop/orders.py
pattern | Use a context variable for the tenant, never a global | threads mixed up two shops | shop/tenant.py
pattern | Debounce the address autocomplete by 250 ms | Google billed 90 dollars in a day | web/src/address.ts
pattern | Compare webhook signatures with hmac.compare_digest | timing attack found in the audit | shop/stripe_webhook.py
pattern | Give each Celery task an explicit acks_late and a time limit | a deploy killed invoices half written | shop/tasks.py
failure | ImportError: libzbar.so.0 not found in the slim image | apt-get install libzbar0 in the Dockerfile | Dockerfile
failure | psycopg.errors.DeadlockDetected in reserve_stock | rows were locked in cart order; sorted by product id | shop/stock.py
failure | Playwright times out on the cookie banner in Safari | the banner animates in; wait for its role | web/e2e/consent.spec.ts
failure | UnicodeEncodeError when the label printer gets an umlaut | CP850 needed by the Zebra printer | warehouse/labels.py
failure | 502 from nginx after each deploy | keepalive of gunicorn was shorter than that of nginx | infra/nginx.conf
failure | alembic found two heads after the coupons branch was merged | merged with a merge revision | shop/migrations
failure | Xcode archive fails: provisioning profile expired | renewed in the developer portal each November | app/ios/Runner.xcodeproj
failure | mypy: Incompatible return value type in slots.available | Optional was missing | delivery/slots.py
failure | Celery worker killed by the OOM killer while rendering invoices | WeasyPrint keeps fonts in memory; max-tasks-per-child 50 | shop/invoices.py
failure | KeyError: 'shipping_address' in the partner export | guests have none; export falls back to billing | shop/export.py
failure | Vite dev server does not reload inside WSL | polling switched on | web/vite.config.ts
failure | flutter pub get hangs behind the proxy | PUB_HOSTED_URL of the mirror | app/pubspec.yaml
failure | test_refund_rounding fails only on Mondays | fixture used the weekday discount | tests/test_refunds.py
failure | ConnectionResetError from the bank sandbox at midnight | they restart it; tests retry | tests/test_transport.py
failure | ESLint rule no-floating-promises broke 40 files | fixed by awaiting the analytics calls | web/src/analytics.ts
failure | Grafana shows no data after the Prometheus upgrade | label instance became pod | infra/grafana/orders.json
failure | git lfs smudge error on the product photos | quota of the account used up | .gitattributes
failure | The cold room tablet shows a white screen | WebView too old for optional chaining | web/vite.config.ts
learning | The warehouse has two floors and each has its own picking queue | floor is part of the shelf code | warehouse/queue.py
learning | reserve_stock must be called inside a transaction | it takes row locks | shop/stock.py
learning | The bank's sandbox declines every amount that ends in 13 | handy for tests of declined cards | tests/test_transport.py
learning | Slot capacity counts crates, not orders | one order can be nine crates | delivery/slots.py
learning | tenant id is the first column of each index | partitions by shop | shop/models.py
learning | Tests need a local PostGIS, plain PostgreSQL is not enough | ST_DWithin in the delivery radius | tests/conftest.py
learning | All timestamps in the database are UTC, columns end in _at | convention since 2021 | shop/models.py
learning | The invoice number must have no gaps by law | a sequence is not enough; table with a lock | shop/invoices.py
learning | Translations live in Weblate and are pulled at night | do not edit .po files by hand | locale/de/LC_MESSAGES
learning | Deploys go through Argo CD from the infra repository | a tag is not enough | infra/argocd
learning | The driver app works offline and syncs with a vector clock | conflicts resolved by the dispatcher | app/lib/sync.dart
learning | Product photos come from a CDN with a 30 day cache | rename the file to refresh it | web/src/photo.ts
learning | Weights from the scale arrive over MQTT in grams | topic scale/<number> | warehouse/scale.py
learning | Age check for wine happens at the door, not at checkout | law of the state | delivery/door.py
learning | the admin is the Django admin behind a VPN | do not link to it | shop/admin.py
preference | Always write tests with pytest, never unittest | |
preference | Never use abbreviations in variable names | |
preference | Prefer small pull requests, one topic each | |
preference | Write commit messages in the imperative with a reason | |
preference | Do not add dependencies without asking | |
preference | Use pathlib, not os.path | |
preference | Answer in German when I write German | |
preference | Keep functions under thirty lines | |
preference | No emoji in code or documentation | |
preference | Run make lint before saying that something is finished | |
preference | Use uv instead of pip | |
correction | Use ruff format instead of black | |
correction | The table is called crate, not box | | delivery/models.py
correction | Use structlog, not logging, in the warehouse service | | warehouse/logs.py
correction | Quantities are Decimal, not float | | shop/stock.py
correction | Names of branches begin with the ticket, as in SHOP-123 | |
observation | Renamed Basket to Cart in the whole web front end | | web/src/cart.ts
observation | Added an index on orders(tenant_id, placed_at) | the order list fell from 900 ms to 12 | shop/migrations
observation | Moved the slot picker into its own component | | web/src/slot-picker.tsx
observation | Updated Django from 4.2 to 5.1 | four deprecations mended | pyproject.toml
observation | Wrote a script that anonymises a production dump | names, mails and phones are replaced | scripts/anonymise.py
observation | Replaced moment.js with date-fns | bundle 60 KB smaller | web/package.json
observation | Added OpenTelemetry spans around the bank calls | | shop/transport.py
observation | Deleted the legacy XML feed for the price comparison portal | nobody fetched it since May | shop/feeds.py
observation | Fixed the colour contrast of the sold-out badge | | web/src/badge.css
observation | Added keyboard navigation to the category menu | arrow keys and Escape | web/src/menu.tsx
observation | Bumped gunicorn workers from 4 to 9 | | infra/gunicorn.conf.py
observation | Added a retry with jitter to the Weblate download | | scripts/translations.py
observation | Wrote the runbook for a lost warehouse tablet | | docs/runbooks/tablet.md
observation | Changed the favicon for dark mode | | web/public/favicon.svg
observation | Split settings.py into base, local and production | | shop/settings/base.py
observation | Added property tests for the money rounding | | tests/test_money.py
observation | Moved crate labels from PDF to ZPL | printing got ten times faster | warehouse/labels.py
observation | Turned on gzip for the GraphQL answers | | infra/nginx.conf
observation | Added a health check to the Celery beat container | | docker-compose.yml
observation | Removed jQuery from the help pages | | web/src/help.ts
change | reserve_stock(cart, *, now) | | shop/stock.py
change | available(day, postcode) -> list[Slot] | | delivery/slots.py
change | class StripeWebhook | | shop/stripe_webhook.py
change | def round_half_even(cents) | | shop/money.py
change | function useCart() | | web/src/cart.ts
change | Future<Barcode> decode(Frame frame) | | app/lib/scanner.dart
change | refund(order, *, lines, reason) | | shop/refunds.py
change | def sort_route(stops, depot) | | delivery/route.py
change | class PickingQueue | | warehouse/queue.py
change | export_partner_orders(since) | | shop/export.py
summary | Delivery slots respect daylight saving | two tests added, Berlin and Lisbon | delivery/slots.py
summary | Refund dialog for support with reasons | partial refunds by line | shop/refunds.py web/src/refund.tsx
summary | Barcode scanner survives a lost camera permission | asks again with an explanation | app/lib/scanner.dart
summary | Partner export as CSV with a header row | delivered by SFTP each night | shop/export.py
summary | Route planning with two-opt, eight percent shorter tours | compared on 200 days of history | delivery/route.py
summary | Login with a magic link instead of passwords | links are valid for ten minutes | shop/auth/magic.py
summary | Dark mode of the web shop | colours as custom properties | web/src/theme.css
summary | Stock import from the wholesaler's EDIFACT files | segment LIN and QTY parsed | shop/edifact.py
summary | Cold chain alarms when a fridge is above seven degrees | MQTT to PagerDuty | warehouse/fridge.py
summary | Loyalty points are booked in a double entry ledger | balance is a sum, never stored | shop/loyalty.py
handoff | Magic links work, the rate limit on them is missing | next: limit to five an hour | shop/auth/magic.py
handoff | EDIFACT import reads prices, discounts are ignored | ask the wholesaler about segment ALC | shop/edifact.py
handoff | Half of the GraphQL resolvers use data loaders | orders and customers are left | shop/graphql/loaders.py
note | the Zebra printer in hall B needs the old ribbon | |
note | ask legal whether tips count as revenue | |
note | Lisbon opens in October | |
note | the wholesaler changes article numbers in January | |
note | someone should look at the slow sitemap | | shop/sitemap.py
note | intern starts on the packing slip | |
project | shop is the Django server; depends on warehouse over HTTP | contracts in openapi/warehouse.yaml | openapi/warehouse.yaml
project | app is the Flutter driver and picker app | released every second Tuesday | app/pubspec.yaml
project | warehouse is a FastAPI service with its own database | owned by the logistics team | warehouse/main.py
failure | Sentry flooded with ResizeObserver loop errors | ignored in the client filter | web/src/sentry.ts
failure | pip install fails for lxml on the ARM runners | wheels come from the company index | requirements.txt
failure | Timeout while waiting for the migrations job in the cluster | the pod had no memory request | infra/migrate.yaml
failure | Cypress download blocked in the pipeline | replaced by Playwright | web/package.json
decision | Playwright replaces Cypress for browser tests | Safari is 30 percent of our customers | web/e2e
decision | Storybook is dropped | nobody kept it up to date | web/.storybook
learning | Postcodes with a leading zero are strings everywhere | Leipzig lost its zero in the export | delivery/postcodes.py
learning | Peak load is Sunday from 18 to 21 | scale up before | infra/autoscale.yaml
pattern | Test mails with a local Mailpit | no mail leaves the laptop | docker-compose.yml
decision | Logs are JSON on stdout and Loki collects them | files filled the disk | infra/loki.yaml
observation | Reviewed the pull request about tipping | three comments on rounding | shop/tips.py
observation | Cleaned up the unused CSS of the old checkout | | web/src/checkout.css
summary | Continued with the packing slip, tests are green | next: print two copies | warehouse/slip.py
failure | make test fails when Docker is not running | start Docker Desktop first | Makefile
"""  # noqa: E501 - one memory a line

# What people say all day: it names no topic, so nothing is worth saying.
EVERYDAY = """
yes
no
ok
go on
continue
thanks!
yes please
sounds good
do it
try again
fix it
fix this
fix the error
fix the bug
fix the failing test
run the tests
run the tests again
run it again
run make test
commit this
commit and push
commit your changes with a good message
push it
open a pull request
create a PR for this
looks good, continue
looks good to me, please commit
why is it failing
why does this fail?
why did you do that?
what happened?
what do you mean
what's next?
what else is left to do?
are you done?
is everything finished now?
can you make it shorter?
can you explain that?
explain this code to me
explain what this function does
please add a comment there
add comments
add a docstring
add tests for this
write a test for it
write more tests
refactor this
clean this up
clean up the code please
remove the unused imports
rename that variable
undo that
revert the last change
revert your changes, they broke the build
that's wrong
that did not work
it still doesn't work
it's still broken, try something else
same error as before
I get the same error again
now I get a different error
there is an error in the output, have a look
the build is broken
the tests are failing, can you check why?
all tests pass now. What should we do next?
the linter complains, fix that too
fix the type errors
use a better name
use the other approach
no, the other file
not that one, the other one
let's go with option 2
the second one
I prefer the first version
wait, stop
hold on a second
start over
start from the beginning and go step by step
let me think about it
I'll test it myself, give me a minute
ok I tested it and it works. Commit it.
great, now do the same for the other files
do the same thing everywhere
apply the change to all of them
show me the diff
show me the file again
read the file first
list all the files in this directory
search for it in the code
check again
are you sure?
double check that please
is this the best way to do it?
could this be faster?
update the readme
update the docs accordingly
summarize what you did
give me a short summary of the changes
bump the version and release it
good morning, where were we?
""".strip().splitlines()

# A prompt with a topic, and the beginning of the title that answers it.
TOPICAL = {
    "why are amounts integer cents and not floats?": "Money is stored as integer cents",
    "the picking queue hangs when two people lock the same crate": "Use PostgreSQL advisory locks",
    "how often does checkout retry the bank transport?": "Checkout retries the bank",
    "add a new redirect URI to the OAuth callback": "OAuth callback accepts only",
    "Sunday delivery slots are off by an hour since daylight saving": "Delivery slots are computed",
    "two coupons were combined in one order, is that allowed?": "Coupons stack only",
    "the welcome email looks broken in Outlook": "Emails are rendered from MJML",
    "can we upgrade to Python 3.13?": "Keep Python 3.11 until",
    "terraform apply says the state is locked": "Terraform state moves",
    "Stripe sent the same webhook event twice": "Wrap a Stripe webhook",
    "I need to backfill the new column on the orders table": "Backfill a big table",
    "slot tests fail at night, how do we freeze the clock?": "Freeze the clock",
    "DeadlockDetected in reserve_stock again": "psycopg.errors.DeadlockDetected",
    "ImportError: libzbar.so.0": "ImportError: libzbar.so.0",
    "umlauts on the printed label are garbage": "UnicodeEncodeError when the label printer",
    "nginx answers 502 for a minute after a deploy": "502 from nginx",
    "alembic complains about two heads": "alembic found two heads",
    "the invoices worker was killed by the OOM killer": "Celery worker killed",
    "which card amounts are declined in the bank sandbox?": "The bank's sandbox declines",
    "are gaps in invoice numbers allowed?": "The invoice number must",
    "where do the translations in the .po files come from?": "Translations live in Weblate",
    "the driver app has a sync conflict after being offline": "The driver app works offline",
    "in which unit do the scales send weights over MQTT?": "Weights from the scale",
    "Playwright times out on the cookie banner": "Playwright times out on the cookie",
    "the partner export crashes with KeyError shipping_address": "KeyError: 'shipping_address'",
    "look at shop/loyalty.py, how are points booked?": "Loyalty points are booked",
    "finish the rate limit for magic links": "Magic links work, the rate limit",
    "EDIFACT discounts from the wholesaler are still ignored": "EDIFACT import reads prices",
    "Leipzig postcodes lost their leading zero": "Postcodes with a leading zero",
    "when is our peak load, and do we scale up before?": "Peak load is Sunday",
}


def remembered(*, project: str, now: float) -> list[Memory]:
    """The made-up memories, four days between each and the next, the last a day old."""
    rows = [[part.strip() for part in row.split("|")] for row in _REMEMBERED.strip().splitlines()]
    memories = []
    for place, (kind, title, *rest) in enumerate(rows):
        body, files = (*rest, "", "")[:2]
        memories.append(
            Memory(
                kind,
                title,
                body=body,
                files=tuple(files.split()),
                project=project,
                created=now - DAY - (place * 37 % len(rows)) * 4 * DAY,  # kinds are spread over the time
            )
        )
    return memories
