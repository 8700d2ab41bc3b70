/** Two examples, and the page of the repository that explains the command. */
interface Usage {
  readonly examples: readonly [string, string]
  readonly docs: string
}

const at = (docs: string, ...examples: Usage["examples"]): Usage => ({ docs: `docs/${docs}`, examples })

const key = "key_e762483474ab46bf99cdd6508ca9197a"
const payment = "pay_0192f0c1a5b77c3e8d21f6a4c09b3e57"
const request = "req_0192f0c1a5b77c3e8d21f6a4"
const video = "vid_0192f0c1a5b77c3e8d21f6a4c09b3e57"
const endpoint = "whe_0192f0c1a5b77c3e8d21f6a4c09b3e57"

const organizations = "operating/organizations.md"
const catalog = "operating/catalog.md"
const webhooks = "operating/webhooks.md"

/** By the words of the command. A group such as `keys` has the examples of its commands. */
const usages: Readonly<Record<string, Usage>> = {
  "": at("operating.md", "gateway orgs create acme --credits 25", "gateway keys create --org acme --name backend"),
  serve: at("operating/running.md", "gateway serve", "PORT=8080 SANDBOX=true gateway serve --workers 2"),
  open: at("console.md", "gateway open", "gateway open --json | jq -r .url"),
  doctor: at("incidents.md", "gateway doctor", "gateway doctor --json | jq '.data[] | select(.state != \"ok\")'"),
  migrate: at(
    "operating/database.md#upgrades-and-migrations",
    "gateway migrate",
    "gateway migrate --json | jq .applied"
  ),
  backup: at(
    "operating/database.md#backups",
    "gateway backup 2026-12-01.backup.gz",
    "gateway backup /mnt/backups/nightly.backup.gz --json"
  ),
  restore: at(
    "operating/database.md#backups",
    "gateway restore 2026-12-01.backup.gz",
    "DATA_DIR=/srv/restored gateway restore nightly.backup.gz"
  ),
  "operators create": at(
    "console.md#create-an-operator",
    "gateway operators create ana --role owner",
    "gateway operators create mia --role write --org acme"
  ),
  "operators list": at("console.md", "gateway operators list", "gateway operators list --json | jq -r '.data[].name'"),
  "operators link": at(
    "console.md#create-an-operator",
    "gateway operators link ana",
    "gateway operators link ana --json | jq -r .link"
  ),
  "operators update": at(
    "console.md",
    "gateway operators update ana --role write",
    "gateway operators update mia --role read --json"
  ),
  "operators revoke": at("console.md", "gateway operators revoke ana", "gateway operators revoke ana --json"),
  "orgs create": at(organizations, "gateway orgs create acme", "gateway orgs create acme --credits 25 --json"),
  "orgs list": at(
    organizations,
    "gateway orgs list",
    "gateway orgs list --json | jq '.data[] | select(.balance_usd < 5)'"
  ),
  "orgs rename": at(
    organizations,
    "gateway orgs rename acme acme-europe",
    'gateway orgs rename acme "Acme Europe" --json'
  ),
  "orgs update": at(
    organizations,
    "gateway orgs update acme --cap 500 --cap-period month",
    "gateway orgs update acme --discount 10 --fit-holds on"
  ),
  "orgs delete": at(organizations, "gateway orgs delete acme", "gateway orgs delete acme --yes --json"),
  "orgs notify": at(webhooks, "gateway orgs notify acme --below 10", "gateway orgs notify acme --below none"),
  "orgs show": at(organizations, "gateway orgs show acme", "gateway orgs show acme --json | jq .available_usd"),
  "orgs suspend": at(organizations, "gateway orgs suspend acme", "gateway orgs suspend acme --json"),
  "orgs resume": at(organizations, "gateway orgs resume acme", "gateway orgs resume acme --json"),
  "keys create": at(
    `${organizations}#limits`,
    "gateway keys create --org acme --name backend --scopes chat,images",
    "gateway keys create --org acme --cap 100 --cap-period month --expires 30d"
  ),
  "keys list": at(organizations, "gateway keys list --org acme", "gateway keys list --org acme --json"),
  "keys show": at(organizations, "gateway keys show backend --org acme", `gateway keys show ${key} --json`),
  "keys update": at(
    `${organizations}#limits`,
    `gateway keys update ${key} --rpm 60`,
    `gateway keys update ${key} --cap none`
  ),
  "keys rename": at(organizations, `gateway keys rename ${key} backend`, `gateway keys rename ${key} "Web shop"`),
  "keys revoke": at("incidents/leaked-key.md", `gateway keys revoke ${key}`, `gateway keys revoke ${key} --json`),
  "keys reissue": at(
    "incidents/leaked-key.md",
    `gateway keys reissue ${key}`,
    `gateway keys reissue ${key} --grace 24h`
  ),
  "credits add": at(
    `${organizations}#credits`,
    "gateway credits add acme 50 --ref inv-2026-0042",
    'gateway credits add acme 12.50 --note "bank transfer" --json'
  ),
  "credits adjust": at(
    `${organizations}#credits`,
    "gateway credits adjust acme 5 --note goodwill",
    'gateway credits adjust acme -1.25 --note "duplicate top-up" --force'
  ),
  "credits refund": at(
    `${organizations}#credits`,
    `gateway credits refund ${request} --note "failed image"`,
    `gateway credits refund ${request} --amount 0.5 --note late`
  ),
  "payments list": at(
    "operating/payments.md",
    "gateway payments list --org acme --since 30d",
    "gateway payments list --status paid --json"
  ),
  "payments show": at(
    "operating/payments.md",
    `gateway payments show ${payment}`,
    `gateway payments show ${payment} --json`
  ),
  "payments reverse": at(
    "operating/payments.md#refunds-in-another-currency",
    `gateway payments reverse ${payment} re_3PqXyz 21.40`,
    `gateway payments reverse ${payment} du_1Pq 0 --json`
  ),
  "payments sync": at(
    "operating/payments.md#events-and-syncs",
    "gateway payments sync",
    "gateway payments sync --since 30d --json"
  ),
  "ledger show": at("operating/ledger.md", "gateway ledger show acme", "gateway ledger show acme --limit 20 --json"),
  "ledger verify": at(
    "operating/ledger.md#verification",
    "gateway ledger verify",
    "gateway ledger verify --json | jq .violations"
  ),
  statement: at(
    "operating/ledger.md#statements",
    "gateway statement acme",
    "gateway statement acme --month 2026-11 --csv > acme-2026-11.csv"
  ),
  holds: at("operating/ledger.md#open-holds", "gateway holds", "gateway holds --org acme --older-than 10m --csv"),
  "webhooks add": at(
    webhooks,
    "gateway webhooks add --org acme --url https://acme.example/hooks",
    "gateway webhooks add --org acme --url https://acme.example/hooks --json"
  ),
  "webhooks list": at(webhooks, "gateway webhooks list", "gateway webhooks list --org acme --json"),
  "webhooks remove": at(webhooks, `gateway webhooks remove ${endpoint}`, `gateway webhooks remove ${endpoint} --json`),
  "webhooks enable": at(
    "incidents/webhooks-fail.md",
    `gateway webhooks enable ${endpoint}`,
    `gateway webhooks enable ${endpoint} --json`
  ),
  "webhooks test": at(
    webhooks,
    `gateway webhooks test ${endpoint}`,
    `gateway webhooks test ${endpoint} --json | jq .status`
  ),
  "webhooks deliveries": at(
    webhooks,
    "gateway webhooks deliveries --org acme --limit 20",
    "gateway webhooks deliveries --failed --json"
  ),
  "webhooks replay": at(
    "incidents/webhooks-fail.md",
    "gateway webhooks replay evt_0192f0c1a5b77c3e8d21f6a4c09b3e57",
    "gateway webhooks replay evt_0192f0c1a5b77c3e8d21f6a4c09b3e57 --json"
  ),
  "webhooks secret": at(webhooks, "gateway webhooks secret --org acme", "gateway webhooks secret --org acme --reissue"),
  "blocklist add": at(
    "operating/network.md",
    "gateway blocklist add 203.0.113.7",
    "gateway blocklist add 2001:db8::/32 --json"
  ),
  "blocklist remove": at(
    "operating/network.md",
    "gateway blocklist remove 203.0.113.7",
    "gateway blocklist remove 2001:db8::/32 --json"
  ),
  "blocklist list": at("operating/network.md", "gateway blocklist list", "gateway blocklist list --json"),
  "catalog check": at(catalog, "gateway catalog check", "gateway catalog check my-catalog.yaml --feed prices.json"),
  "catalog propose": at(
    `${catalog}#new-models-from-a-price-list`,
    "gateway catalog propose --feed prices.json",
    "gateway catalog propose --feed prices.json --vendor openai > draft.yaml"
  ),
  "catalog reload": at(
    `${catalog}#changing-it-without-a-restart`,
    "gateway catalog reload",
    "gateway catalog reload --json | jq -r '.data[].state'"
  ),
  "models list": at(catalog, "gateway models list", "gateway models list --json"),
  providers: at(
    "operating/routes.md#circuits",
    "gateway providers",
    "gateway providers --json | jq '.data[] | select(.circuit != \"closed\")'"
  ),
  "routes disable": at(
    "operating/routes.md",
    "gateway routes disable claude-opus-4-8@anthropic",
    'gateway routes disable claude-opus-4-8@anthropic --note "slow since 14:00"'
  ),
  "routes enable": at(
    "operating/routes.md",
    "gateway routes enable claude-opus-4-8@anthropic",
    "gateway routes enable claude-opus-4-8@anthropic --json"
  ),
  "routes reset": at(
    "operating/routes.md#circuits",
    "gateway routes reset claude-opus-4-8@anthropic",
    "gateway routes reset claude-opus-4-8@anthropic --json"
  ),
  requests: at(
    "operating/requests.md#the-request-log",
    "gateway requests --org acme --status 5xx --since 1h",
    "gateway requests --since last-month --until this-month --csv > log.csv"
  ),
  "requests show": at(
    "operating/requests.md#one-request",
    `gateway requests show ${request}`,
    `gateway requests show ${request} --json | jq '.data[].price'`
  ),
  usage: at(
    "operating/requests.md#usage",
    "gateway usage --org acme --since this-month",
    "gateway usage --by org,model --since 7d --csv > usage.csv"
  ),
  reconcile: at(
    "operating/reconcile.md",
    "gateway reconcile openai --since 7d",
    "gateway reconcile openrouter --since yesterday --tolerance 0.5 --json"
  ),
  "videos list": at("operating/videos.md", "gateway videos list", "gateway videos list --status failed --limit 20"),
  "videos show": at("operating/videos.md", `gateway videos show ${video}`, `gateway videos show ${video} --json`),
  "videos retry": at(
    "incidents/videos-stuck.md",
    `gateway videos retry ${video}`,
    `gateway videos retry ${video} --json`
  ),
  "videos cancel": at(
    "incidents/videos-stuck.md",
    `gateway videos cancel ${video}`,
    `gateway videos cancel ${video} --json`
  ),
  "media delete": at(
    "operating/media.md#move-delete-back-up",
    "gateway media delete https://gateway.example/media/0192f0c1a5b77c3e.png",
    "gateway media delete 0192f0c1a5b77c3e.png --json"
  )
}

/** Returns undefined for a command without examples, which a test refuses. */
export const usageOf = (path: ReadonlyArray<string>): Usage | undefined => {
  const name = path.join(" ")
  const own = usages[name]
  if (own !== undefined) return own
  const [first, second = first] = Object.entries(usages).flatMap(([child, usage]) =>
    child.startsWith(`${name} `) ? [usage] : []
  )
  if (first === undefined || second === undefined) return undefined
  const [page = ""] = first.docs.split("#")
  return { docs: page, examples: [first.examples[0], second === first ? first.examples[1] : second.examples[0]] }
}
