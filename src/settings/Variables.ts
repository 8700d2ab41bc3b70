import { Config, ConfigError, Duration, Either, LogLevel } from "effect"
import { findQuotes } from "../domain/TextDecoding.ts"
import * as Kinds from "./SettingKinds.ts"

interface Variable<A> extends Config.Config<A> {
  readonly variable: string
  readonly shown: string
  readonly about: string
}

const variable = <A, const Default>(
  name: string,
  { accepts, parse }: Kinds.Kind<A>,
  about: string,
  fallback: Default,
  shown = String(fallback ?? "")
): Variable<A | Default> =>
  Object.assign(
    Config.string(name).pipe(
      Config.mapOrFail((text) => {
        const value = text.trim()
        const problem = findQuotes(value)
        const read = problem === undefined ? parse(value) : undefined
        return Either.fromNullable(read, () => ConfigError.InvalidData([], problem ?? `must be ${accepts}`))
      }),
      Config.withDefault(fallback)
    ),
    { variable: name, shown, about }
  )

const optional = <A>(name: string, kind: Kinds.Kind<A>, about: string, shown = "") =>
  variable(name, kind, about, undefined, shown)

const seconds = (name: string, fallback: number, about: string) =>
  variable(name, Kinds.seconds, about, Duration.seconds(fallback), String(fallback))

const logLevels = {
  all: LogLevel.All,
  trace: LogLevel.Trace,
  debug: LogLevel.Debug,
  info: LogLevel.Info,
  warn: LogLevel.Warning,
  warning: LogLevel.Warning,
  error: LogLevel.Error,
  fatal: LogLevel.Fatal,
  none: LogLevel.None
}

const samplers = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio"
] as const

/** In the order of the help. */
export const variables = {
  host: variable("HOST", Kinds.host, "address to listen on", "127.0.0.1"),
  port: variable("PORT", Kinds.integer(0, 65_535), "port to listen on", 8787),
  workers: variable("WORKERS", Kinds.workers, "processes that answer at the address; auto: one per core", 1),
  publicUrl: optional(
    "PUBLIC_URL",
    Kinds.baseUrl,
    "what clients call; addresses and links are built on it",
    "http://127.0.0.1:$PORT"
  ),
  databaseUrl: optional("DATABASE_URL", Kinds.databaseUrl, "PostgreSQL to use; unset: an embedded one under DATA_DIR"),
  dataDir: variable("DATA_DIR", Kinds.text, "where the embedded database and local media live", "./.data"),
  catalogFile: optional("CATALOG_FILE", Kinds.text, "catalog to serve; unset: the built-in one"),
  sandbox: optional("SANDBOX", Kinds.flag, "whether the sandbox may serve; unset: when no provider credential is set"),
  defaultRpm: variable(
    "DEFAULT_RPM",
    Kinds.integer(1, 2_147_483_647),
    "requests per minute of a key without a limit of its own",
    600
  ),
  trustProxy: variable(
    "TRUST_PROXY",
    Kinds.integer(),
    "number of proxies whose X-Forwarded-For entries are believed",
    0
  ),
  mediaStore: variable("MEDIA_STORE", Kinds.oneOf("disk", "s3"), "where media are kept: disk or s3", "disk"),
  mediaPublicUrl: optional(
    "MEDIA_PUBLIC_URL",
    Kinds.baseUrl,
    "what links to media are built on; with s3 the bucket's address",
    "$PUBLIC_URL/media"
  ),
  s3Bucket: optional("S3_BUCKET", Kinds.bucketName, "bucket for media"),
  s3Endpoint: optional("S3_ENDPOINT", Kinds.baseUrl, "address of an S3-compatible service; unset: AWS"),
  s3Region: variable("S3_REGION", Kinds.text, "region of the bucket", "us-east-1"),
  awsAccessKeyId: optional("AWS_ACCESS_KEY_ID", Kinds.secret, "credential for the bucket"),
  awsSecretAccessKey: optional("AWS_SECRET_ACCESS_KEY", Kinds.secret, "credential for the bucket"),
  awsSessionToken: optional(
    "AWS_SESSION_TOKEN",
    Kinds.secret,
    "credential for the bucket, where it is a temporary one"
  ),
  requestTimeout: seconds(
    "REQUEST_TIMEOUT",
    290,
    "seconds for a JSON answer, or for a stream until a provider generates"
  ),
  connectTimeout: seconds("CONNECT_TIMEOUT", 5, "seconds to connect to a provider"),
  firstByteTimeout: seconds("FIRST_BYTE_TIMEOUT", 60, "seconds of one try until a stream's provider generates"),
  idleTimeout: seconds("IDLE_TIMEOUT", 180, "seconds of silence inside a stream"),
  streamTimeout: seconds("STREAM_TIMEOUT", 3600, "seconds for a stream in all"),
  videoTimeout: seconds("VIDEO_TIMEOUT", 1800, "seconds for a render in all"),
  shutdownDelay: optional(
    "SHUTDOWN_DELAY",
    Kinds.secondsOrNone,
    "seconds that a stop goes on serving, unready, before it drains",
    "0 if no other instance runs, else 5"
  ),
  shutdownTimeout: seconds("SHUTDOWN_TIMEOUT", 30, "seconds that requests get to finish when the gateway stops"),
  logRetentionDays: variable(
    "LOG_RETENTION_DAYS",
    Kinds.integer(1, 36_500),
    "days that rows of the request log are kept",
    90
  ),
  maxBodyBytes: optional(
    "MAX_BODY_BYTES",
    Kinds.integer(1),
    "largest request body in bytes; unset: 32 MiB for chat, 48 MiB for images and videos"
  ),
  corsOrigins: variable(
    "CORS_ORIGINS",
    Kinds.origins,
    "origins that browsers may call from, comma-separated, or *",
    []
  ),
  fetchAllow: variable(
    "FETCH_ALLOW",
    Kinds.ranges,
    "CIDRs exempt from the checks on customers' URLs, comma-separated",
    []
  ),
  resultFetchAllow: variable(
    "RESULT_FETCH_ALLOW",
    Kinds.ranges,
    "CIDRs exempt from the checks on providers' result URLs, comma-separated",
    []
  ),
  httpProxy: optional("HTTP_PROXY", Kinds.proxyUrl, "proxy for calls to http addresses; unset: none"),
  httpsProxy: optional("HTTPS_PROXY", Kinds.proxyUrl, "proxy for calls to https addresses", "$HTTP_PROXY"),
  noProxy: variable("NO_PROXY", Kinds.text, "hosts that are called without a proxy, comma-separated, or *", ""),
  logLevel: variable("LOG_LEVEL", Kinds.choice(logLevels), "least severe level that is logged", LogLevel.Info, "info"),
  logFormat: variable("LOG_FORMAT", Kinds.oneOf("pretty", "json"), "form of log lines: pretty or json", "pretty"),
  otelSdkDisabled: variable("OTEL_SDK_DISABLED", Kinds.flag, "whether no traces are sent, whatever else is set", false),
  otelTracesExporter: variable(
    "OTEL_TRACES_EXPORTER",
    Kinds.text,
    "traces are sent if this names otlp; none: no traces",
    "otlp"
  ),
  otlpEndpoint: optional(
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    Kinds.baseUrl,
    "OpenTelemetry collector, which gets traces at /v1/traces; unset: no traces"
  ),
  otlpTracesEndpoint: optional(
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    Kinds.baseUrl,
    "the whole URL for traces",
    "$OTEL_EXPORTER_OTLP_ENDPOINT/v1/traces"
  ),
  otlpHeaders: optional(
    "OTEL_EXPORTER_OTLP_HEADERS",
    Kinds.secretHeaders,
    "headers for the collector: name=value, comma-separated"
  ),
  otlpProtocol: variable(
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    Kinds.oneOf("http/protobuf", "http/json"),
    "form of traces: http/protobuf or http/json",
    "http/protobuf"
  ),
  otelServiceName: optional(
    "OTEL_SERVICE_NAME",
    Kinds.text,
    "the gateway's name in traces",
    "service.name of OTEL_RESOURCE_ATTRIBUTES, else generation-gateway"
  ),
  otelResourceAttributes: variable(
    "OTEL_RESOURCE_ATTRIBUTES",
    Kinds.pairs,
    "attributes of every trace: name=value, comma-separated",
    {},
    ""
  ),
  tracesSampler: variable(
    "OTEL_TRACES_SAMPLER",
    Kinds.oneOf(...samplers),
    `which requests are traced: ${samplers.join(", ")}`,
    "parentbased_always_on"
  ),
  tracesSamplerArg: variable(
    "OTEL_TRACES_SAMPLER_ARG",
    Kinds.ratio,
    "share that the traceidratio samplers trace, from 0 to 1",
    1
  ),
  metricsPublic: variable("METRICS_PUBLIC", Kinds.flag, "whether /metrics answers to others than loopback", false),
  consolePublic: variable(
    "CONSOLE_PUBLIC",
    Kinds.flag,
    "whether /console and /admin answer to others than loopback",
    false
  ),
  membersPublic: variable(
    "MEMBERS_PUBLIC",
    Kinds.flag,
    "whether /console and /admin answer members of organizations, and only them, from elsewhere too",
    false
  ),
  // Without the two secrets there are no payments.
  stripeSecretKey: optional(
    "STRIPE_SECRET_KEY",
    Kinds.stripeKey,
    "key of a Stripe account by which customers pay; unset: no payments"
  ),
  stripeWebhookSecret: optional(
    "STRIPE_WEBHOOK_SECRET",
    Kinds.stripeWebhookSecret,
    "what Stripe signs its events to /stripe/webhook with"
  ),
  stripeApiBase: variable("STRIPE_API_BASE", Kinds.baseUrl, "where Stripe's API is", "https://api.stripe.com"),
  topupMinUsd: variable("TOPUP_MIN_USD", Kinds.cents, "least that a customer may pay at once, in USD", 500, "5"),
  topupMaxUsd: variable("TOPUP_MAX_USD", Kinds.cents, "most that a customer may pay at once, in USD", 500_000, "5000"),
  disputePolicy: variable(
    "DISPUTE_POLICY",
    Kinds.oneOf("suspend", "ignore"),
    "what an open dispute does to its organization: suspend refuses its requests, ignore does not",
    "suspend"
  ),
  gatewayActor: optional(
    "GATEWAY_ACTOR",
    Kinds.text,
    "your name in the audit of what commands change",
    "USER@HOST, with the address that SSH came from"
  )
}

export const describeSettings = (): string => {
  const rows: ReadonlyArray<Variable<unknown>> = Object.values(variables)
  const name = Math.max(...rows.map((row) => row.variable.length))
  const shown = Math.max(...rows.map((row) => row.shown.length))
  const lines = rows.map((row) => `${row.variable.padEnd(name)}  ${row.shown.padEnd(shown)}  ${row.about}`)
  return [
    ...lines,
    "",
    "Each provider of the catalog names the variable that holds its credential.",
    "A .env file in the working directory is read; the environment wins over it. An empty value counts as unset.",
    "DATABASE_URL_FILE may name a file with the value; so may NAME_FILE for each NAME that ends in _KEY, _TOKEN or _SECRET."
  ].join("\n")
}

export const settingNames: ReadonlyArray<string> = Object.values(variables).map(({ variable }) => variable)
