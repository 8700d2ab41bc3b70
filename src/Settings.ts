import { readFileSync } from "node:fs"
import { availableParallelism } from "node:os"
import path from "node:path"
import { parseEnv } from "node:util"
import { type ConfigError, ConfigProvider, Data, Duration, Effect, type LogLevel, type Redacted } from "effect"
import ipaddr from "ipaddr.js"
import type { AddressRange } from "./services/access/AddressRange.ts"
import { variables } from "./settings/Variables.ts"

/** A setting that cannot be used. The message is one line, names the variable and what it takes, and no value. */
export class SettingsInvalid extends Data.TaggedError("SettingsInvalid")<{
  readonly variable: string
  readonly message: string
}> {}

export type MediaSettings =
  | { readonly store: "disk"; readonly directory: string; readonly publicUrl: string }
  | {
      readonly store: "s3"
      readonly bucket: string
      /** Undefined is AWS. */
      readonly endpoint: string | undefined
      readonly region: string
      readonly accessKeyId: Redacted.Redacted
      readonly secretAccessKey: Redacted.Redacted
      readonly sessionToken: Redacted.Redacted | undefined
      readonly publicUrl: string
    }

/** Base URLs have no trailing slash, directories are absolute. */
export interface Settings {
  readonly host: string
  readonly port: number
  /** Processes that answer at the address. */
  readonly workers: number
  readonly publicUrl: string
  /** Undefined is the embedded database. */
  readonly databaseUrl: Redacted.Redacted | undefined
  readonly dataDir: string
  /** Undefined is the built-in catalog. */
  readonly catalogFile: string | undefined
  /** Undefined leaves it to whether any provider credential is set. */
  readonly sandbox: boolean | undefined
  readonly defaultRpm: number
  readonly trustProxy: number
  readonly media: MediaSettings
  readonly timeouts: {
    readonly request: Duration.Duration
    readonly connect: Duration.Duration
    readonly firstByte: Duration.Duration
    readonly idle: Duration.Duration
    readonly stream: Duration.Duration
    readonly video: Duration.Duration
    /** Undefined leaves it to whether another instance lives. */
    readonly shutdownDelay: Duration.Duration | undefined
    readonly shutdown: Duration.Duration
  }
  readonly logRetention: Duration.Duration
  readonly maxBodyBytes: { readonly chat: number; readonly media: number }
  readonly corsOrigins: ReadonlyArray<string>
  readonly fetchAllow: ReadonlyArray<AddressRange>
  readonly resultFetchAllow: ReadonlyArray<AddressRange>
  readonly logLevel: LogLevel.LogLevel
  readonly logFormat: "pretty" | "json"
  readonly otlpEndpoint: string | undefined
  readonly metricsPublic: boolean
}

/** Variables by name, empty ones left out. Holds secrets: never print it. */
export type Environment = Readonly<Record<string, string>>

/** The process's variables over those of the `.env` file in the directory, where there is one. */
export const readEnvironment = (
  directory: string = process.cwd(),
  own: Readonly<Record<string, string | undefined>> = process.env
): Effect.Effect<Environment, SettingsInvalid> =>
  Effect.map(readEnvFile(path.join(directory, ".env")), (filed) =>
    Object.fromEntries(
      Object.entries({ ...filed, ...own }).flatMap(([name, value]) =>
        value === undefined || value.trim() === "" ? [] : [[name, value]]
      )
    )
  )

const isMissing = (error: unknown) => error instanceof Error && "code" in error && error.code === "ENOENT"

const readEnvFile = (file: string) =>
  Effect.try(() => parseEnv(readFileSync(file, "utf8"))).pipe(
    Effect.catchIf(
      ({ error }) => isMissing(error),
      () => Effect.succeed({})
    ),
    Effect.mapError(() => new SettingsInvalid({ variable: ".env", message: `${file} cannot be read.` }))
  )

const mib = 1024 * 1024

const required = <A>(value: A | undefined, variable: string) =>
  value === undefined
    ? Effect.fail(new SettingsInvalid({ variable, message: `${variable} is required with MEDIA_STORE=s3.` }))
    : Effect.succeed(value)

const readMedia = Effect.fnUntraced(function* (dataDir: string, publicUrl: string) {
  const links = yield* variables.mediaPublicUrl.config
  if ((yield* variables.mediaStore.config) === "disk") {
    return {
      store: "disk",
      directory: path.join(dataDir, "media"),
      publicUrl: links ?? `${publicUrl}/media`
    } satisfies MediaSettings
  }
  const bucket = yield* required(yield* variables.s3Bucket.config, "S3_BUCKET")
  const endpoint = yield* variables.s3Endpoint.config
  const region = yield* variables.s3Region.config
  const address = endpoint === undefined ? `https://${bucket}.s3.${region}.amazonaws.com` : `${endpoint}/${bucket}`
  return {
    store: "s3",
    bucket,
    endpoint,
    region,
    accessKeyId: yield* required(yield* variables.awsAccessKeyId.config, "AWS_ACCESS_KEY_ID"),
    secretAccessKey: yield* required(yield* variables.awsSecretAccessKey.config, "AWS_SECRET_ACCESS_KEY"),
    sessionToken: yield* variables.awsSessionToken.config,
    publicUrl: links ?? address
  } satisfies MediaSettings
})

const readTimeouts = Effect.gen(function* () {
  return {
    request: yield* variables.requestTimeout.config,
    connect: yield* variables.connectTimeout.config,
    firstByte: yield* variables.firstByteTimeout.config,
    idle: yield* variables.idleTimeout.config,
    stream: yield* variables.streamTimeout.config,
    video: yield* variables.videoTimeout.config,
    shutdownDelay: yield* variables.shutdownDelay.config,
    shutdown: yield* variables.shutdownTimeout.config
  }
})

/** The embedded database has connections for as many. */
const mostWorkersEmbedded = 32

const readWorkers = Effect.fnUntraced(function* (databaseUrl: Redacted.Redacted | undefined) {
  const workers = yield* variables.workers.config
  const most = databaseUrl === undefined ? mostWorkersEmbedded : Infinity
  if (workers === "auto") return Math.min(availableParallelism(), most)
  if (workers <= most) return workers
  const message = `WORKERS must be at most ${most} with the embedded database; set DATABASE_URL for more.`
  return yield* new SettingsInvalid({ variable: "WORKERS", message })
})

const readAll = Effect.gen(function* () {
  const port = yield* variables.port.config
  const publicUrl = (yield* variables.publicUrl.config) ?? `http://127.0.0.1:${port}`
  const dataDir = path.resolve(yield* variables.dataDir.config)
  const databaseUrl = yield* variables.databaseUrl.config
  const catalogFile = yield* variables.catalogFile.config
  const maxBodyBytes = yield* variables.maxBodyBytes.config
  return {
    host: yield* variables.host.config,
    port,
    workers: yield* readWorkers(databaseUrl),
    publicUrl,
    databaseUrl,
    dataDir,
    catalogFile: catalogFile === undefined ? undefined : path.resolve(catalogFile),
    sandbox: yield* variables.sandbox.config,
    defaultRpm: yield* variables.defaultRpm.config,
    trustProxy: yield* variables.trustProxy.config,
    media: yield* readMedia(dataDir, publicUrl),
    timeouts: yield* readTimeouts,
    logRetention: Duration.days(yield* variables.logRetentionDays.config),
    maxBodyBytes: { chat: maxBodyBytes || 32 * mib, media: maxBodyBytes || 48 * mib },
    corsOrigins: yield* variables.corsOrigins.config,
    fetchAllow: yield* variables.fetchAllow.config,
    resultFetchAllow: yield* variables.resultFetchAllow.config,
    logLevel: yield* variables.logLevel.config,
    logFormat: yield* variables.logFormat.config,
    otlpEndpoint: yield* variables.otlpEndpoint.config,
    metricsPublic: yield* variables.metricsPublic.config
  } satisfies Settings
})

const explain = (error: ConfigError.ConfigError | SettingsInvalid): SettingsInvalid => {
  if (error._tag === "SettingsInvalid") return error
  if (error._op === "And" || error._op === "Or") return explain(error.left)
  const variable = error.path.join(".")
  return new SettingsInvalid({ variable, message: `${variable} ${error.message}.` })
}

/** Every setting, read from the environment; the first wrong value fails it. */
export const readSettings = (environment: Environment): Effect.Effect<Settings, SettingsInvalid> =>
  readAll.pipe(
    Effect.withConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(environment)))),
    Effect.mapError(explain)
  )

/** Beside a database that somebody set up on purpose the sandbox serves only when it is asked for. */
export const sandboxMode = ({ databaseUrl, sandbox }: Settings): boolean | "when-no-credential" =>
  sandbox ?? (databaseUrl === undefined ? "when-no-credential" : false)

const isLoopback = (host: string) => {
  const name = host.replace(/^\[(.*)\]$/, "$1").toLowerCase()
  return name === "localhost" || (ipaddr.isValid(name) && ipaddr.process(name).range() === "loopback")
}

/** What is allowed but probably not meant, one line each. */
export const warnings = (settings: Settings): ReadonlyArray<string> =>
  !isLoopback(settings.host) && isLoopback(new URL(settings.publicUrl).hostname)
    ? [
        `HOST ${settings.host} is reachable from elsewhere, but PUBLIC_URL ${settings.publicUrl} is not: set PUBLIC_URL to the address that clients use.`
      ]
    : []
