import { Config, ConfigError, Duration, Either, LogLevel } from "effect"
import { findQuotes } from "../domain/TextDecoding.ts"
import * as Kinds from "./SettingKinds.ts"

interface Variable<A> extends Config.Config<A> {
  readonly variable: string
  readonly defaultText: string
  readonly description: string
}

const variable = <A, const Default>(
  name: string,
  { accepts, parse }: Kinds.Kind<A>,
  description: string,
  fallback: Default,
  defaultText = String(fallback ?? "")
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
    { variable: name, defaultText, description }
  )

const optional = <A>(name: string, kind: Kinds.Kind<A>, description: string, defaultText = "") =>
  variable(name, kind, description, undefined, defaultText)

const seconds = (name: string, fallback: number, description: string) =>
  variable(name, Kinds.seconds, description, Duration.seconds(fallback), String(fallback))

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

/** The help lists the settings in this order. */
export const variables = {
  host: variable("HOST", Kinds.host, "address to listen on", "127.0.0.1"),
  port: variable("PORT", Kinds.integer(0, 65_535), "port to listen on", 8787),
  workers: variable("WORKERS", Kinds.workers, "number of worker processes; auto: one per core", 1),
  publicUrl: optional(
    "PUBLIC_URL",
    Kinds.baseUrl,
    "public base URL of the gateway, used in its links",
    "http://127.0.0.1:$PORT"
  ),
  databaseUrl: optional(
    "DATABASE_URL",
    Kinds.databaseUrl,
    "URL of the PostgreSQL database; unset: embedded database in DATA_DIR"
  ),
  dataDir: variable("DATA_DIR", Kinds.text, "directory of the embedded database and local media", "./.data"),
  catalogFile: optional("CATALOG_FILE", Kinds.text, "catalog file; unset: the built-in catalog"),
  sandbox: optional(
    "SANDBOX",
    Kinds.flag,
    "enable the built-in mock provider; unset: only with the embedded database and no provider credential"
  ),
  defaultRpm: variable(
    "DEFAULT_RPM",
    Kinds.integer(1, 2_147_483_647),
    "requests per minute for keys without their own limit",
    600
  ),
  trustProxy: variable(
    "TRUST_PROXY",
    Kinds.integer(),
    "number of trusted proxies in front of the gateway that append to X-Forwarded-For",
    0
  ),
  mediaStore: variable("MEDIA_STORE", Kinds.oneOf("disk", "s3"), "media store: disk or s3", "disk"),
  mediaPublicUrl: optional(
    "MEDIA_PUBLIC_URL",
    Kinds.baseUrl,
    "base URL of media links; default with s3: the bucket's address",
    "$PUBLIC_URL/media"
  ),
  s3Bucket: optional("S3_BUCKET", Kinds.bucketName, "bucket for media"),
  s3Endpoint: optional("S3_ENDPOINT", Kinds.baseUrl, "URL of an S3-compatible service; unset: AWS"),
  s3Region: variable("S3_REGION", Kinds.text, "region of the bucket", "us-east-1"),
  awsAccessKeyId: optional("AWS_ACCESS_KEY_ID", Kinds.secret, "access key id for the bucket"),
  awsSecretAccessKey: optional("AWS_SECRET_ACCESS_KEY", Kinds.secret, "secret access key for the bucket"),
  awsSessionToken: optional("AWS_SESSION_TOKEN", Kinds.secret, "session token of temporary credentials"),
  requestTimeout: seconds(
    "REQUEST_TIMEOUT",
    290,
    "maximum seconds for a JSON response, or for the first output of a stream"
  ),
  connectTimeout: seconds("CONNECT_TIMEOUT", 5, "maximum seconds to connect to a provider"),
  firstByteTimeout: seconds(
    "FIRST_BYTE_TIMEOUT",
    60,
    "maximum seconds that one attempt may take until the first output of a stream"
  ),
  idleTimeout: seconds("IDLE_TIMEOUT", 180, "maximum seconds without data in a stream"),
  streamTimeout: seconds("STREAM_TIMEOUT", 3600, "maximum duration of a stream, in seconds"),
  videoTimeout: seconds("VIDEO_TIMEOUT", 1800, "maximum duration of a video job, in seconds"),
  shutdownDelay: optional(
    "SHUTDOWN_DELAY",
    Kinds.secondsOrNone,
    "seconds at shutdown during which /readyz fails but requests are still served",
    "0 if no other instance runs, otherwise 5"
  ),
  shutdownTimeout: seconds("SHUTDOWN_TIMEOUT", 30, "maximum seconds to wait for running requests at shutdown"),
  logRetentionDays: variable("LOG_RETENTION_DAYS", Kinds.integer(1, 36_500), "days to keep the request log", 90),
  maxBodyBytes: optional(
    "MAX_BODY_BYTES",
    Kinds.integer(1),
    "maximum request body in bytes; unset: 32 MiB for chat, 48 MiB for images and videos"
  ),
  corsOrigins: variable(
    "CORS_ORIGINS",
    Kinds.origins,
    "comma-separated origins of web pages that may call the gateway, or *",
    []
  ),
  fetchAllow: variable(
    "FETCH_ALLOW",
    Kinds.ranges,
    "comma-separated CIDRs that are exempt from the public-address and port checks of customers' URLs",
    []
  ),
  resultFetchAllow: variable(
    "RESULT_FETCH_ALLOW",
    Kinds.ranges,
    "comma-separated CIDRs that are exempt from the public-address and port checks of providers' result URLs",
    []
  ),
  httpProxy: optional("HTTP_PROXY", Kinds.proxyUrl, "proxy for calls to http addresses; unset: none"),
  httpsProxy: optional("HTTPS_PROXY", Kinds.proxyUrl, "proxy for calls to https addresses", "$HTTP_PROXY"),
  noProxy: variable("NO_PROXY", Kinds.text, "comma-separated hosts to call without a proxy, or *", ""),
  logLevel: variable("LOG_LEVEL", Kinds.choice(logLevels), "minimum log level", LogLevel.Info, "info"),
  logFormat: variable("LOG_FORMAT", Kinds.oneOf("pretty", "json"), "log format: pretty or json", "pretty"),
  otelSdkDisabled: variable("OTEL_SDK_DISABLED", Kinds.flag, "disable traces, regardless of other settings", false),
  otelTracesExporter: variable("OTEL_TRACES_EXPORTER", Kinds.text, "otlp: send traces; none: send no traces", "otlp"),
  otlpEndpoint: optional(
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    Kinds.baseUrl,
    "URL of an OpenTelemetry collector, which receives traces at /v1/traces; unset: no traces"
  ),
  otlpTracesEndpoint: optional(
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    Kinds.baseUrl,
    "full URL for traces",
    "$OTEL_EXPORTER_OTLP_ENDPOINT/v1/traces"
  ),
  otlpHeaders: optional(
    "OTEL_EXPORTER_OTLP_HEADERS",
    Kinds.secretHeaders,
    "comma-separated headers for the collector, name=value"
  ),
  otlpProtocol: variable(
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    Kinds.oneOf("http/protobuf", "http/json"),
    "trace format: http/protobuf or http/json",
    "http/protobuf"
  ),
  otelServiceName: optional(
    "OTEL_SERVICE_NAME",
    Kinds.text,
    "service name in traces",
    "service.name of OTEL_RESOURCE_ATTRIBUTES, or generation-gateway"
  ),
  otelResourceAttributes: variable(
    "OTEL_RESOURCE_ATTRIBUTES",
    Kinds.pairs,
    "comma-separated attributes of every trace, name=value",
    {},
    ""
  ),
  tracesSampler: variable(
    "OTEL_TRACES_SAMPLER",
    Kinds.oneOf(...samplers),
    `trace sampler: ${samplers.join(", ")}`,
    "parentbased_always_on"
  ),
  tracesSamplerArg: variable(
    "OTEL_TRACES_SAMPLER_ARG",
    Kinds.ratio,
    "share of requests to trace with a traceidratio sampler, from 0 to 1",
    1
  ),
  areMetricsPublic: variable(
    "METRICS_PUBLIC",
    Kinds.flag,
    "serve /metrics to every client; false: only to loopback addresses",
    false
  ),
  isConsolePublic: variable(
    "CONSOLE_PUBLIC",
    Kinds.flag,
    "serve /console and /admin to every client; false: only to loopback addresses",
    false
  ),
  areMembersPublic: variable(
    "MEMBERS_PUBLIC",
    Kinds.flag,
    "serve /console and /admin to members (console users of one organization) from any address",
    false
  ),
  stripeSecretKey: optional(
    "STRIPE_SECRET_KEY",
    Kinds.stripeKey,
    "secret key of your Stripe account; unset: no payments"
  ),
  stripeWebhookSecret: optional(
    "STRIPE_WEBHOOK_SECRET",
    Kinds.stripeWebhookSecret,
    "signing secret of the Stripe webhook endpoint /stripe/webhook"
  ),
  stripeApiBase: variable("STRIPE_API_BASE", Kinds.baseUrl, "base URL of Stripe's API", "https://api.stripe.com"),
  topupMinUsd: variable("TOPUP_MIN_USD", Kinds.cents, "minimum payment, in USD", 500, "5"),
  topupMaxUsd: variable("TOPUP_MAX_USD", Kinds.cents, "maximum payment, in USD", 500_000, "5000"),
  disputePolicy: variable(
    "DISPUTE_POLICY",
    Kinds.oneOf("suspend", "ignore"),
    "what an open dispute does; suspend: refuse the organization's new requests; ignore: nothing",
    "suspend"
  ),
  sellerName: optional(
    "SELLER_NAME",
    Kinds.printableText(100),
    "your company, as printed on statements and receipts; unset: no seller"
  ),
  sellerAddress: optional(
    "SELLER_ADDRESS",
    Kinds.printableLines,
    "address printed below SELLER_NAME; \\n separates its lines"
  ),
  sellerTaxId: optional("SELLER_TAX_ID", Kinds.printableText(100), "tax id printed below SELLER_ADDRESS"),
  gatewayActor: optional(
    "GATEWAY_ACTOR",
    Kinds.text,
    "name recorded in the audit log for CLI commands",
    "USER@HOST, with the client address of an SSH session"
  )
}

export const describeSettings = (): string => {
  const rows: ReadonlyArray<Variable<unknown>> = Object.values(variables)
  const nameWidth = Math.max(...rows.map((row) => row.variable.length))
  const defaultWidth = Math.max(...rows.map((row) => row.defaultText.length))
  const lines = rows.map(
    (row) => `${row.variable.padEnd(nameWidth)}  ${row.defaultText.padEnd(defaultWidth)}  ${row.description}`
  )
  return [
    ...lines,
    "",
    "The catalog defines which environment variable holds each provider's credential.",
    "The gateway also reads a .env file in the working directory. Environment variables override it. An empty value counts as unset.",
    "To read a value from a file, set NAME_FILE to its path. This works for DATABASE_URL and every NAME that ends in _KEY, _TOKEN or _SECRET."
  ].join("\n")
}

export const settingNames: ReadonlyArray<string> = Object.values(variables).map(({ variable }) => variable)
