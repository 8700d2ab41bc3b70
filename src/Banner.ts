import { SqlClient } from "@effect/sql"
import { Effect, Layer, Option, Redacted, Schema } from "effect"
import type { Model, RouteBase } from "./domain/Model.ts"
import { NanoUsd } from "./domain/Money.ts"
import { OrganizationScope } from "./domain/OrganizationScope.ts"
import { pluralize } from "./domain/Wording.ts"
import type { Settings } from "./Settings.ts"
import { ApiKeys } from "./services/access/ApiKeys.ts"
import { CurrentActor } from "./services/admin/Actor.ts"
import { Audit } from "./services/admin/AuditLog.ts"
import * as OperatorOperations from "./services/admin/OperatorOperations.ts"
import { linkHours, Operators } from "./services/admin/Operators.ts"
import { Organizations } from "./services/admin/Organizations.ts"
import type { CatalogSnapshot } from "./services/catalog/Catalog.ts"
import { isSandbox } from "./services/catalog/CatalogRules.ts"
import { LedgerAdmin } from "./services/ledger/LedgerAdmin.ts"
import { rowsOf } from "./services/sql/SqlStatement.ts"

const demoOrganization = "demo"
const firstOperator = "admin"
const demoCredits = NanoUsd(100_000_000_000n)

interface FirstSecrets {
  readonly key: Redacted.Redacted
  /** A sign-in link for the first operator. None if there already are operators. */
  readonly link: Option.Option<Redacted.Redacted>
}

/** Names for the example commands in the banner: those of the oldest organization and operator. */
interface Examples {
  readonly organization: Option.Option<string>
  /** An operator of the gateway, not a member. */
  readonly operator: Option.Option<string>
}

const Named = Schema.Struct({ organization: Schema.NullOr(Schema.String), operator: Schema.NullOr(Schema.String) })

const noExamples: Examples = { organization: Option.none(), operator: Option.none() }

/** Finds the names for the example commands. Returns none if the database is unreachable, so the start does not fail. */
export const findExamples = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [found] = yield* rowsOf(Named)(sql`
    SELECT (SELECT name FROM organizations WHERE deleted_at IS NULL ORDER BY created_at LIMIT 1) AS organization,
      (SELECT name FROM operators WHERE revoked_at IS NULL AND org_id IS NULL ORDER BY created_at LIMIT 1) AS operator`)
  if (found === undefined) return noExamples
  return { organization: Option.fromNullable(found.organization), operator: Option.fromNullable(found.operator) }
}).pipe(Effect.catchAllDefect(() => Effect.succeed(noExamples)))

const services = Layer.mergeAll(
  ApiKeys.layer,
  Audit.layer,
  CurrentActor.commandLine(),
  Operators.layer,
  Layer.provide(Organizations.layer, LedgerAdmin.layer)
)

/** On a first start, creates the demo organization and the first operator. Returns none if an organization exists. */
export const firstStart = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const organizations = yield* Organizations
  const keys = yield* ApiKeys
  const operators = yield* Operators
  const existing = yield* organizations.list
  if (existing.length > 0) return Option.none()
  const makeOperator = Effect.gen(function* () {
    if ((yield* operators.list(OrganizationScope.all)).length > 0) return Option.none()
    const { value } = yield* Effect.orDie(OperatorOperations.create.run({ name: firstOperator, role: "owner" }))
    return Option.map(Option.fromNullable(value), ({ link }) => link)
  })
  const make = Effect.gen(function* () {
    const { id } = yield* organizations.create({ name: demoOrganization, credits: demoCredits })
    const { secret } = yield* Effect.orDie(keys.create({ org: id, name: demoOrganization }))
    return Option.some<FirstSecrets>({ key: secret, link: yield* makeOperator })
  })
  // Ignores a name that is taken: another process on the same directory has just done the same.
  return yield* sql.withTransaction(make).pipe(Effect.catchTag("NameTaken", () => Effect.succeedNone))
}).pipe(Effect.provide(services))

interface Started {
  readonly settings: Pick<Settings, "databaseUrl" | "dataDir">
  readonly url: string
  readonly catalog: Pick<CatalogSnapshot, "models" | "providers">
  readonly first: Option.Option<FirstSecrets>
  readonly examples: Examples
}

const routesOf = ({ routes }: Model): ReadonlyArray<RouteBase> => routes

const servingLines = ({ models, providers }: Started["catalog"]): ReadonlyArray<string> => {
  const real = models.filter((model) => !routesOf(model).every(isSandbox)).length
  const names = new Set(models.flatMap(routesOf).flatMap((route) => (isSandbox(route) ? [] : route.provider.name)))
  const inSandbox = models.length - real
  const mixed = models.filter((model) => routesOf(model).some(isSandbox)).length - inSandbox
  const credential = providers.find(({ variable }) => variable !== undefined)?.variable
  return [
    real > 0 && `${pluralize(real, "model is", "models are")} served by ${[...names].join(", ")}.`,
    inSandbox > 0 &&
      `The sandbox serves ${pluralize(inSandbox, "model")}. It serves mock responses, charges for them, and calls no provider.`,
    mixed > 0 &&
      `The sandbox is also a route of ${pluralize(mixed, "model")} with real providers. It serves mock responses and charges for them.`,
    real === 0 &&
      credential !== undefined &&
      `To use real models, add a provider's key to .env, for example ${credential}=…, and restart.`
  ].filter((line) => line !== false)
}

const curl = (url: string, key: string, path: string, body: unknown, flags = "") =>
  `  curl ${flags}${url}/v1${path} -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' -d '${JSON.stringify(body)}'`

const firstRequests = ({ catalog: { models }, url }: Started, key: string): ReadonlyArray<string> => {
  const idOf = (is: (model: Model) => boolean) => models.find(is)?.id
  const chat = idOf(({ surface }) => surface === "chat")
  const image = idOf(({ surface }) => surface === "image")
  const video = idOf((model) => model.surface === "video" && model.referenceImage !== "required")
  const ask = (model: string, content: string) => ({ model, messages: [{ role: "user", content }] })
  const get = (path: string) => `  curl ${url}/v1${path} -H 'Authorization: Bearer ${key}'`
  return [
    ...(chat === undefined
      ? []
      : [
          "Send a chat request:",
          curl(url, key, "/chat/completions", ask(chat, "Say hello in one sentence.")),
          "Stream a chat response:",
          curl(url, key, "/chat/completions", { ...ask(chat, "Count from one to five."), stream: true }, "-N ")
        ]),
    ...(image === undefined
      ? []
      : ["Create an image:", curl(url, key, "/images/generations", { model: image, prompt: "A lighthouse at dusk" })]),
    ...(video === undefined
      ? []
      : [
          "Create a video, then list your videos until it is completed:",
          curl(url, key, "/videos", { model: video, prompt: "Waves rolling onto a beach" }),
          get("/videos")
        ]),
    "List the models and show the balance:",
    get("/models"),
    get("/credits")
  ]
}

const firstLines = (started: Started, { key, link }: FirstSecrets): ReadonlyArray<string> => [
  `The organization "${demoOrganization}" has 100 USD. Store its API key now, because it is shown only once:`,
  `  ${Redacted.value(key)}`,
  "",
  ...Option.match(link, {
    onNone: () => linkLines(started),
    onSome: (secret) => [
      `Open the console as the operator "${firstOperator}". This link can be used once, within ${linkHours} hours:`,
      `  ${started.url}/console#link=${Redacted.value(secret)}`
    ]
  }),
  "",
  ...firstRequests(started, Redacted.value(key))
]

const quoteForShell = (name: string) => (/^[\w.@-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`)

const linkLines = ({ examples: { operator }, url }: Started): ReadonlyArray<string> =>
  Option.match(operator, {
    onNone: () => [`To open the console at ${url}/console: gateway operators create ${firstOperator} --role owner`],
    onSome: (name) => [
      `To open the console at ${url}/console, print a link: gateway operators link ${quoteForShell(name)}`,
      "To add an operator: gateway operators create alice --role read"
    ]
  })

const laterLines = (started: Started): ReadonlyArray<string> => [
  Option.match(started.examples.organization, {
    onNone: () => "To create an organization: gateway orgs create acme --credits 25",
    onSome: (name) => `To create an API key: gateway keys create --org ${quoteForShell(name)}`
  }),
  ...linkLines(started),
  "In a checkout, use npx gateway."
]

/** Returns the text that a start prints: the address, the providers and the first steps. */
export const banner = (started: Started): string => {
  const { catalog, first, settings, url } = started
  return [
    "",
    `The Generation Gateway is listening on ${url}/v1`,
    "",
    ...servingLines(catalog),
    ...(settings.databaseUrl === undefined ? [`The database is the embedded PostgreSQL in ${settings.dataDir}.`] : []),
    "",
    ...Option.match(first, {
      onNone: () => laterLines(started),
      onSome: (secrets) => firstLines(started, secrets)
    }),
    ""
  ].join("\n")
}
