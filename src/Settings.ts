import { availableParallelism } from "node:os"
import path from "node:path"
import { Config, type ConfigError, ConfigProvider, Duration, Effect, Redacted } from "effect"
import { findNearest } from "./domain/Nearest.ts"
import type { Proxies } from "./node/Outgoing.ts"
import { isLoopbackHost } from "./services/access/AddressRange.ts"
import { type Environment, readEnvironment, SettingsInvalid } from "./settings/Environment.ts"
import { settingNames, variables } from "./settings/Variables.ts"

const required = <A>(value: A | undefined, variable: string) =>
  value === undefined
    ? Effect.fail(new SettingsInvalid({ variable, message: `${variable} is required with MEDIA_STORE=s3.` }))
    : Effect.succeed(value)

const maxWorkersEmbedded = 32

const countWorkers = (workers: number | "auto", isEmbedded: boolean) => {
  const most = isEmbedded ? maxWorkersEmbedded : Infinity
  if (workers === "auto") return Effect.succeed(Math.min(availableParallelism(), most))
  if (workers <= most) return Effect.succeed(workers)
  const message = `WORKERS must be at most ${most} with the embedded database; set DATABASE_URL for more.`
  return new SettingsInvalid({ variable: "WORKERS", message })
}

const mib = 1024 * 1024

const oneOfTwo = (variable: string, other: string) =>
  new SettingsInvalid({ variable, message: `${variable} is required with ${other}: set both, or neither.` })

interface StripeVariables {
  readonly secretKey: Redacted.Redacted | undefined
  readonly webhookSecret: Redacted.Redacted | undefined
  readonly apiBase: string
}

/** Undefined: there are no payments. */
const readStripe = Effect.fnUntraced(function* ({ apiBase, secretKey, webhookSecret }: StripeVariables) {
  if (secretKey === undefined && webhookSecret === undefined) return undefined
  if (secretKey === undefined) return yield* oneOfTwo("STRIPE_SECRET_KEY", "STRIPE_WEBHOOK_SECRET")
  if (webhookSecret === undefined) return yield* oneOfTwo("STRIPE_WEBHOOK_SECRET", "STRIPE_SECRET_KEY")
  return { secretKey, webhookSecret, apiBase, isLive: /^[sr]k_live_/.test(Redacted.value(secretKey)) }
})

const defaultPublicUrl = (port: number) => `http://127.0.0.1:${port}`

/** Whether clients use an address other than this machine's own port. */
export const hasPublicUrl = ({ port, publicUrl }: Pick<Settings, "port" | "publicUrl">): boolean =>
  publicUrl !== defaultPublicUrl(port)

const read = Effect.gen(function* () {
  const {
    awsAccessKeyId,
    awsSecretAccessKey,
    awsSessionToken,
    catalogFile,
    disputePolicy,
    logRetentionDays,
    maxBodyBytes,
    mediaPublicUrl,
    mediaStore,
    s3Bucket,
    s3Endpoint,
    s3Region,
    stripeApiBase: apiBase,
    stripeSecretKey: secretKey,
    stripeWebhookSecret: webhookSecret,
    topupMaxUsd: maxCents,
    topupMinUsd: minCents,
    workers,
    ...given
  } = yield* Config.all(variables)
  const publicUrl = given.publicUrl ?? defaultPublicUrl(given.port)
  const dataDir = path.resolve(given.dataDir)
  const disk = {
    store: "disk" as const,
    directory: path.join(dataDir, "media"),
    publicUrl: mediaPublicUrl ?? `${publicUrl}/media`
  }
  const s3 = Effect.gen(function* () {
    const bucket = yield* required(s3Bucket, "S3_BUCKET")
    const address = s3Endpoint ? `${s3Endpoint}/${bucket}` : `https://${bucket}.s3.${s3Region}.amazonaws.com`
    return {
      store: "s3" as const,
      bucket,
      endpoint: s3Endpoint,
      region: s3Region,
      accessKeyId: yield* required(awsAccessKeyId, "AWS_ACCESS_KEY_ID"),
      secretAccessKey: yield* required(awsSecretAccessKey, "AWS_SECRET_ACCESS_KEY"),
      sessionToken: awsSessionToken,
      publicUrl: mediaPublicUrl ?? address
    }
  })
  if (minCents > maxCents) {
    const message = "TOPUP_MIN_USD must be at most TOPUP_MAX_USD."
    return yield* new SettingsInvalid({ variable: "TOPUP_MIN_USD", message })
  }
  return {
    ...given,
    publicUrl,
    dataDir,
    stripe: yield* readStripe({ secretKey, webhookSecret, apiBase }),
    topUps: { minCents, maxCents, suspendsDisputed: disputePolicy === "suspend" },
    workers: yield* countWorkers(workers, given.databaseUrl === undefined),
    catalogFile: catalogFile === undefined ? undefined : path.resolve(catalogFile),
    media: mediaStore === "disk" ? disk : yield* s3,
    logRetention: Duration.days(logRetentionDays),
    maxBodyBytes: { chat: maxBodyBytes ?? 32 * mib, media: maxBodyBytes ?? 48 * mib }
  }
})

interface Misspelt {
  readonly given: string
  readonly meant: string
}

/** Names beside which the one that was meant is not set; another program may read the others. */
const findMisspelt = (given: ReadonlyArray<string>, known: ReadonlyArray<string>): ReadonlyArray<Misspelt> => {
  const set = new Set(given)
  const unset = known.filter((name) => !set.has(name))
  const isKnown = new Set(known)
  return given.flatMap((name) => {
    if (isKnown.has(name)) return []
    const [meant] = findNearest(
      name,
      unset.filter((other) => other[0] === name[0])
    )
    return meant === undefined ? [] : [{ given: name, meant }]
  })
}

/** Base URLs have no trailing slash, directories are absolute; undefined takes the documented default. */
export interface Settings extends Effect.Effect.Success<typeof read> {
  readonly misspelt: ReadonlyArray<Misspelt>
}

const explain = (error: ConfigError.ConfigError | SettingsInvalid): SettingsInvalid => {
  if (error._tag === "SettingsInvalid") return error
  if (error._op === "And" || error._op === "Or") return explain(error.left)
  const variable = error.path.join(".")
  return new SettingsInvalid({ variable, message: `${variable} ${error.message}.` })
}

/** As with curl, lower-case names of proxies work too, and win. */
const proxyAliases = (environment: Environment) =>
  Object.entries(environment).flatMap(
    ([name, value]): Array<[string, string]> =>
      /^(?:https?|no)_proxy$/.test(name) ? [[name.toUpperCase(), value]] : []
  )

export const readSettings = (environment: Environment): Effect.Effect<Settings, SettingsInvalid> =>
  read.pipe(
    Effect.withConfigProvider(
      ConfigProvider.fromMap(new Map([...Object.entries(environment), ...proxyAliases(environment)]))
    ),
    Effect.map((settings) => ({ ...settings, misspelt: findMisspelt(Object.keys(environment), settingNames) })),
    Effect.mapError(explain)
  )

/** Reads `.env` again, for credentials that have changed. */
export const rereadSettings = Effect.flatMap(readEnvironment(), readSettings)

export const proxiesOf = ({ httpProxy, httpsProxy, noProxy }: Settings): Proxies => ({
  http: httpProxy && Redacted.value(httpProxy),
  https: httpsProxy && Redacted.value(httpsProxy),
  except: noProxy
})

/** Beside an external database the sandbox serves only on request. */
export const sandboxMode = ({ databaseUrl, sandbox }: Settings): boolean | "when-no-credential" =>
  sandbox ?? (databaseUrl === undefined ? "when-no-credential" : false)

const endsInBucket = ({ media }: Settings): boolean =>
  media.store === "s3" && media.endpoint !== undefined && new URL(media.endpoint).pathname.endsWith(`/${media.bucket}`)

/** What is appended to an address is easily written twice. */
const repeatedPaths = (settings: Settings): ReadonlyArray<string> => [
  ...(settings.publicUrl.endsWith("/v1")
    ? ["PUBLIC_URL ends in /v1, so links to media lead to /v1/media: leave /v1 out."]
    : []),
  ...(endsInBucket(settings)
    ? ["S3_ENDPOINT ends in the name of the bucket, which is appended to it: leave the name out."]
    : []),
  ...(settings.otlpEndpoint?.endsWith("/v1/traces") === true && settings.otlpTracesEndpoint === undefined
    ? ["OTEL_EXPORTER_OTLP_ENDPOINT ends in /v1/traces, which is appended to it: leave /v1/traces out."]
    : [])
]

/** Allowed but probably not meant, one line each. */
export const warnings = (settings: Settings): ReadonlyArray<string> => {
  const { host, misspelt, publicUrl } = settings
  return [
    ...(!isLoopbackHost(host) && isLoopbackHost(new URL(publicUrl).hostname)
      ? [
          `HOST ${host} is reachable from elsewhere, but PUBLIC_URL ${publicUrl} is not: set PUBLIC_URL to the address that clients use.`
        ]
      : []),
    ...repeatedPaths(settings),
    ...misspelt.map(({ given, meant }) => `${given} is no setting: did you mean ${meant}?`)
  ]
}
