import { availableParallelism } from "node:os"
import path from "node:path"
import { Config, type ConfigError, ConfigProvider, Duration, Effect, Redacted } from "effect"
import { findNearest } from "./domain/Wording.ts"
import type { Proxies } from "./node/Outgoing.ts"
import { isLoopbackHost } from "./services/access/BlockList.ts"
import { type Environment, readEnvironment, SettingsInvalid } from "./settings/Environment.ts"
import { settingNames, variables } from "./settings/Variables.ts"

const required = <A>(value: A | undefined, variable: string) =>
  value === undefined
    ? Effect.fail(new SettingsInvalid({ variable, message: `${variable} is required with MEDIA_STORE=s3.` }))
    : Effect.succeed(value)

const maxWorkersEmbedded = 32

const countWorkers = (workers: number | "auto", isEmbedded: boolean) => {
  const max = isEmbedded ? maxWorkersEmbedded : Infinity
  if (workers === "auto") return Effect.succeed(Math.min(availableParallelism(), max))
  if (workers <= max) return Effect.succeed(workers)
  const message = `WORKERS must be at most ${max} with the embedded database; set DATABASE_URL for more.`
  return new SettingsInvalid({ variable: "WORKERS", message })
}

const mib = 1024 * 1024

const missingPartner = (variable: string, other: string) =>
  new SettingsInvalid({ variable, message: `${variable} is required with ${other}. Set both or neither.` })

interface StripeVariables {
  readonly secretKey: Redacted.Redacted | undefined
  readonly webhookSecret: Redacted.Redacted | undefined
  readonly apiBase: string
}

/** Returns undefined if payments are not configured. */
const readStripe = Effect.fnUntraced(function* ({ apiBase, secretKey, webhookSecret }: StripeVariables) {
  if (secretKey === undefined && webhookSecret === undefined) return undefined
  if (secretKey === undefined) return yield* missingPartner("STRIPE_SECRET_KEY", "STRIPE_WEBHOOK_SECRET")
  if (webhookSecret === undefined) return yield* missingPartner("STRIPE_WEBHOOK_SECRET", "STRIPE_SECRET_KEY")
  return { secretKey, webhookSecret, apiBase, isLive: /^[sr]k_live_/.test(Redacted.value(secretKey)) }
})

interface SellerVariables {
  readonly sellerName: string | undefined
  readonly sellerAddress: string | undefined
  readonly sellerTaxId: string | undefined
}

/** Returns undefined if no seller is set. */
const readSeller = Effect.fnUntraced(function* ({ sellerAddress, sellerName, sellerTaxId }: SellerVariables) {
  if (sellerName !== undefined) {
    return {
      name: sellerName,
      ...(sellerAddress !== undefined && { address: sellerAddress }),
      ...(sellerTaxId !== undefined && { tax_id: sellerTaxId })
    }
  }
  if (sellerAddress === undefined && sellerTaxId === undefined) return undefined
  const other = sellerAddress === undefined ? "SELLER_TAX_ID" : "SELLER_ADDRESS"
  const message = `SELLER_NAME is required with ${other}.`
  return yield* new SettingsInvalid({ variable: "SELLER_NAME", message })
})

const defaultPublicUrl = (port: number) => `http://127.0.0.1:${port}`

/** Returns whether PUBLIC_URL is set to another address than the default one. */
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
    sellerAddress,
    sellerName,
    sellerTaxId,
    stripeApiBase: apiBase,
    stripeSecretKey: secretKey,
    stripeWebhookSecret: webhookSecret,
    topupMaxUsd: maxCents,
    topupMinUsd: minCents,
    workers,
    ...rest
  } = yield* Config.all(variables)
  const publicUrl = rest.publicUrl ?? defaultPublicUrl(rest.port)
  const dataDir = path.resolve(rest.dataDir)
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
    ...rest,
    publicUrl,
    dataDir,
    stripe: yield* readStripe({ secretKey, webhookSecret, apiBase }),
    seller: yield* readSeller({ sellerName, sellerAddress, sellerTaxId }),
    topUps: { minCents, maxCents, suspendsDisputed: disputePolicy === "suspend" },
    workers: yield* countWorkers(workers, rest.databaseUrl === undefined),
    catalogFile: catalogFile === undefined ? undefined : path.resolve(catalogFile),
    media: mediaStore === "disk" ? disk : yield* s3,
    logRetention: Duration.days(logRetentionDays),
    maxBodyBytes: { chat: maxBodyBytes ?? 32 * mib, media: maxBodyBytes ?? 48 * mib }
  }
})

interface Misspelling {
  readonly name: string
  readonly suggestion: string
}

/** Finds variables whose names resemble a setting that is not set. Other variables may belong to other programs. */
const findMisspellings = (
  names: ReadonlyArray<string>,
  settings: ReadonlyArray<string>
): ReadonlyArray<Misspelling> => {
  const present = new Set(names)
  const unset = settings.filter((name) => !present.has(name))
  const valid = new Set(settings)
  return names.flatMap((name) => {
    if (valid.has(name)) return []
    const [suggestion] = findNearest(
      name,
      unset.filter((other) => other[0] === name[0])
    )
    return suggestion === undefined ? [] : [{ name, suggestion }]
  })
}

/** Base URLs have no trailing slash, and paths of directories are absolute. An undefined setting has its documented default. */
export interface Settings extends Effect.Effect.Success<typeof read> {
  readonly misspellings: ReadonlyArray<Misspelling>
}

const explain = (error: ConfigError.ConfigError | SettingsInvalid): SettingsInvalid => {
  if (error._tag === "SettingsInvalid") return error
  if (error._op === "And" || error._op === "Or") return explain(error.left)
  const variable = error.path.join(".")
  return new SettingsInvalid({ variable, message: `${variable} ${error.message}.` })
}

/** Reads proxies from lower-case variables too, such as `https_proxy`. These take precedence, as in curl. */
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
    Effect.map((settings) => ({ ...settings, misspellings: findMisspellings(Object.keys(environment), settingNames) })),
    Effect.mapError(explain)
  )

/** Reads the settings again, including `.env`, because credentials may have changed. */
export const rereadSettings = Effect.flatMap(readEnvironment(), readSettings)

export const proxiesOf = ({ httpProxy, httpsProxy, noProxy }: Settings): Proxies => ({
  http: httpProxy && Redacted.value(httpProxy),
  https: httpsProxy && Redacted.value(httpsProxy),
  except: noProxy
})

/** With an external database, the sandbox is off unless SANDBOX is set. */
export const sandboxMode = ({ databaseUrl, sandbox }: Settings): boolean | "when-no-credential" =>
  sandbox ?? (databaseUrl === undefined ? "when-no-credential" : false)

const endsInBucket = ({ media }: Settings): boolean =>
  media.store === "s3" && media.endpoint !== undefined && new URL(media.endpoint).pathname.endsWith(`/${media.bucket}`)

/** Warns about a setting that ends with a path or name that the gateway appends itself. */
const repeatedPaths = (settings: Settings): ReadonlyArray<string> => [
  ...(settings.publicUrl.endsWith("/v1")
    ? ["PUBLIC_URL ends in /v1, so media links point to /v1/media. Remove /v1."]
    : []),
  ...(endsInBucket(settings)
    ? ["S3_ENDPOINT ends in the bucket name, which the gateway appends. Remove the bucket name."]
    : []),
  ...(settings.otlpEndpoint?.endsWith("/v1/traces") === true && settings.otlpTracesEndpoint === undefined
    ? ["OTEL_EXPORTER_OTLP_ENDPOINT ends in /v1/traces, which the gateway appends. Remove /v1/traces."]
    : [])
]

/** Returns one line for each setting whose value is valid but probably a mistake. */
export const warnings = (settings: Settings): ReadonlyArray<string> => {
  const { host, misspellings, publicUrl } = settings
  return [
    ...(!isLoopbackHost(host) && isLoopbackHost(new URL(publicUrl).hostname)
      ? [
          `HOST ${host} accepts other machines, but PUBLIC_URL ${publicUrl} is a loopback address. Set PUBLIC_URL to the address that clients use.`
        ]
      : []),
    ...repeatedPaths(settings),
    ...misspellings.map(({ name, suggestion }) => `${name} is not a setting. Did you mean ${suggestion}?`)
  ]
}
