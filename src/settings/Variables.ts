import { LogLevel } from "effect"
import {
  baseUrl,
  choice,
  databaseUrl,
  delay,
  flag,
  integer,
  origins,
  processes,
  ranges,
  seconds,
  secret,
  text,
  type Variable
} from "./Variable.ts"

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

/** Every setting, in the order that help shows. */
export const variables = {
  host: text("HOST", "127.0.0.1", "address to listen on"),
  port: integer("PORT", 8787, "port to listen on", { to: 65_535 }),
  workers: processes("WORKERS", "processes that answer at the address; auto: one per core"),
  publicUrl: {
    ...baseUrl("PUBLIC_URL", "what clients call; addresses and links are built on it"),
    shown: "http://127.0.0.1:$PORT"
  },
  databaseUrl: databaseUrl("DATABASE_URL", "PostgreSQL to use; unset: an embedded one under DATA_DIR"),
  dataDir: text("DATA_DIR", "./.data", "where the embedded database and local media live"),
  catalogFile: text("CATALOG_FILE", undefined, "catalog to serve; unset: the built-in one"),
  sandbox: flag("SANDBOX", undefined, "whether the sandbox may serve; unset: when no provider credential is set"),
  defaultRpm: integer("DEFAULT_RPM", 600, "requests per minute of a key without a limit of its own", {
    from: 1,
    to: 2_147_483_647
  }),
  trustProxy: integer("TRUST_PROXY", 0, "number of proxies whose X-Forwarded-For entries are believed", {}),
  mediaStore: choice(
    "MEDIA_STORE",
    { disk: "disk", s3: "s3" } as const,
    "disk",
    "disk",
    "where media are kept: disk or s3"
  ),
  mediaPublicUrl: {
    ...baseUrl("MEDIA_PUBLIC_URL", "what links to media are built on; with s3 the bucket's address"),
    shown: "$PUBLIC_URL/media"
  },
  s3Bucket: text("S3_BUCKET", undefined, "bucket for media"),
  s3Endpoint: baseUrl("S3_ENDPOINT", "address of an S3-compatible service; unset: AWS"),
  s3Region: text("S3_REGION", "us-east-1", "region of the bucket"),
  awsAccessKeyId: secret("AWS_ACCESS_KEY_ID", "credential for the bucket"),
  awsSecretAccessKey: secret("AWS_SECRET_ACCESS_KEY", "credential for the bucket"),
  awsSessionToken: secret("AWS_SESSION_TOKEN", "credential for the bucket, where it is a temporary one"),
  requestTimeout: seconds("REQUEST_TIMEOUT", 290, "seconds for a JSON answer, or for a stream up to its first output"),
  connectTimeout: seconds("CONNECT_TIMEOUT", 5, "seconds to connect to a provider"),
  firstByteTimeout: seconds("FIRST_BYTE_TIMEOUT", 60, "seconds of one try up to a stream's first output"),
  idleTimeout: seconds("IDLE_TIMEOUT", 180, "seconds of silence inside a stream"),
  streamTimeout: seconds("STREAM_TIMEOUT", 3600, "seconds for a stream in all"),
  videoTimeout: seconds("VIDEO_TIMEOUT", 1800, "seconds for a render in all"),
  shutdownDelay: delay(
    "SHUTDOWN_DELAY",
    "5 beside another instance, else 0",
    "seconds that a stop goes on serving, unready, before it drains"
  ),
  shutdownTimeout: seconds("SHUTDOWN_TIMEOUT", 30, "seconds that requests get to finish when the gateway stops"),
  logRetentionDays: integer("LOG_RETENTION_DAYS", 90, "days that rows of the request log are kept", {
    from: 1,
    to: 36_500
  }),
  maxBodyBytes: {
    ...integer(
      "MAX_BODY_BYTES",
      0,
      "largest request body in bytes; unset: 32 MiB for chat, 48 MiB for images and videos",
      {
        from: 1
      }
    ),
    shown: ""
  },
  corsOrigins: origins("CORS_ORIGINS", "origins that browsers may call from, comma-separated, or *"),
  fetchAllow: ranges("FETCH_ALLOW", "CIDRs exempt from the checks on customers' URLs, comma-separated"),
  resultFetchAllow: ranges(
    "RESULT_FETCH_ALLOW",
    "CIDRs exempt from the checks on providers' result URLs, comma-separated"
  ),
  logLevel: choice("LOG_LEVEL", logLevels, "info", LogLevel.Info, "least severe level that is logged"),
  logFormat: choice(
    "LOG_FORMAT",
    { pretty: "pretty", json: "json" } as const,
    "pretty",
    "pretty",
    "form of log lines: pretty or json"
  ),
  otlpEndpoint: baseUrl("OTEL_EXPORTER_OTLP_ENDPOINT", "where traces are sent; unset: nowhere"),
  metricsPublic: flag("METRICS_PUBLIC", false, "whether /metrics answers to others than loopback")
}

/** One line a setting: name, default, meaning. */
export const describeSettings = (): string => {
  const rows: ReadonlyArray<Variable<unknown>> = Object.values(variables)
  const name = Math.max(...rows.map((row) => row.name.length))
  const shown = Math.max(...rows.map((row) => row.shown.length))
  const lines = rows.map((row) => `${row.name.padEnd(name)}  ${row.shown.padEnd(shown)}  ${row.about}`)
  return [
    ...lines,
    "",
    "Each provider of the catalog names the variable that holds its credential.",
    "A .env file in the working directory is read; the environment wins over it. An empty value counts as unset."
  ].join("\n")
}
