import { mkdirSync, writeFileSync } from "node:fs"
import { availableParallelism } from "node:os"
import path from "node:path"
import { Duration, Effect, LogLevel, Redacted } from "effect"
import { proxiesOf, readSettings, warnings } from "../src/Settings.ts"
import { type Environment, readEnvironment, type SettingsInvalid } from "../src/settings/Environment.ts"
import { describeSettings, variables } from "../src/settings/Variables.ts"
import { assert, describe, it } from "./harness/It.ts"
import { temporaryDirectory } from "./harness/temporary.ts"

const refused = (environment: Environment): Effect.Effect<SettingsInvalid, unknown> =>
  Effect.flip(readSettings(environment))

const warned = (environment: Environment) => Effect.map(readSettings(environment), warnings)

describe("Settings", () => {
  it.effect("have their defaults when nothing is set", function* () {
    const settings = yield* readSettings({})
    assert.deepStrictEqual(settings, {
      host: "127.0.0.1",
      port: 8787,
      workers: 1,
      publicUrl: "http://127.0.0.1:8787",
      databaseUrl: undefined,
      dataDir: path.resolve(".data"),
      catalogFile: undefined,
      sandbox: undefined,
      defaultRpm: 600,
      trustProxy: 0,
      media: { store: "disk", directory: path.resolve(".data/media"), publicUrl: "http://127.0.0.1:8787/media" },
      requestTimeout: Duration.seconds(290),
      connectTimeout: Duration.seconds(5),
      firstByteTimeout: Duration.seconds(60),
      idleTimeout: Duration.seconds(180),
      streamTimeout: Duration.seconds(3600),
      videoTimeout: Duration.seconds(1800),
      shutdownDelay: undefined,
      shutdownTimeout: Duration.seconds(30),
      logRetention: Duration.days(90),
      maxBodyBytes: { chat: 33_554_432, media: 50_331_648 },
      stripe: undefined,
      seller: undefined,
      topUps: { minCents: 500, maxCents: 500_000, suspendsDisputed: true },
      corsOrigins: [],
      fetchAllow: [],
      resultFetchAllow: [],
      httpProxy: undefined,
      httpsProxy: undefined,
      noProxy: "",
      logLevel: LogLevel.Info,
      logFormat: "pretty",
      otelSdkDisabled: false,
      otelTracesExporter: "otlp",
      otlpEndpoint: undefined,
      otlpTracesEndpoint: undefined,
      otlpHeaders: undefined,
      otlpProtocol: "http/protobuf",
      otelServiceName: undefined,
      otelResourceAttributes: {},
      tracesSampler: "parentbased_always_on",
      tracesSamplerArg: 1,
      areMetricsPublic: false,
      isConsolePublic: false,
      areMembersPublic: false,
      gatewayActor: undefined,
      misspellings: []
    })
  })

  it.effect("take every value that is given", function* () {
    const settings = yield* readSettings({
      HOST: "::",
      PORT: "9000",
      WORKERS: "40",
      PUBLIC_URL: "https://gateway.example/base//",
      DATABASE_URL: "postgres://u:p@db/gateway",
      CATALOG_FILE: "/etc/catalog.yaml",
      SANDBOX: "TRUE",
      DEFAULT_RPM: "5",
      TRUST_PROXY: "2",
      MEDIA_PUBLIC_URL: "https://cdn.example/",
      CONNECT_TIMEOUT: "0.25",
      MAX_BODY_BYTES: "1000",
      CORS_ORIGINS: "https://a.example, http://b.example:8080",
      FETCH_ALLOW: "10.1.2.3/8,::1",
      LOG_LEVEL: "Warn",
      LOG_FORMAT: "json",
      METRICS_PUBLIC: "yes",
      CONSOLE_PUBLIC: "1"
    })
    assert.strictEqual(settings.port, 9000)
    assert.strictEqual(settings.workers, 40)
    assert.strictEqual(settings.publicUrl, "https://gateway.example/base")
    assert.strictEqual(settings.databaseUrl && Redacted.value(settings.databaseUrl), "postgres://u:p@db/gateway")
    assert.strictEqual(settings.catalogFile, "/etc/catalog.yaml")
    assert.strictEqual(settings.sandbox, true)
    assert.strictEqual(settings.defaultRpm, 5)
    assert.strictEqual(settings.trustProxy, 2)
    assert.strictEqual(settings.media.publicUrl, "https://cdn.example")
    assert.deepStrictEqual(settings.connectTimeout, Duration.millis(250))
    assert.deepStrictEqual(settings.maxBodyBytes, { chat: 1000, media: 1000 })
    assert.deepStrictEqual(settings.corsOrigins, ["https://a.example", "http://b.example:8080"])
    assert.deepStrictEqual(settings.fetchAllow.map(String), ["10.0.0.0/8", "::1/128"])
    assert.strictEqual(settings.logLevel, LogLevel.Warning)
    assert.strictEqual(settings.logFormat, "json")
    assert.strictEqual(settings.areMetricsPublic, true)
    assert.strictEqual(settings.isConsolePublic, true)
  })

  it.effect("read OpenTelemetry's lists, percent-encoded", function* () {
    const settings = yield* readSettings({
      OTEL_EXPORTER_OTLP_HEADERS: "authorization=Basic%20abc==, x-scope = team",
      OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test,team=a%2Cb"
    })
    const headers = settings.otlpHeaders && Redacted.value(settings.otlpHeaders)
    assert.deepStrictEqual(headers, { authorization: "Basic abc==", "x-scope": "team" })
    assert.deepStrictEqual(settings.otelResourceAttributes, {
      "deployment.environment.name": "test",
      team: "a,b"
    })
  })

  it.effect("take the brackets of an IPv6 address off", function* () {
    for (const HOST of ["[::1]", "::1"]) assert.strictEqual((yield* readSettings({ HOST })).host, "::1")
  })

  it.effect("build the default public address on the port", function* () {
    assert.strictEqual((yield* readSettings({ PORT: "1234" })).publicUrl, "http://127.0.0.1:1234")
  })

  const wrong: ReadonlyArray<readonly [variable: string, value: string]> = [
    ["PORT", "65536"],
    ["PORT", "80x"],
    ["PORT", "-1"],
    ["PORT", "8e3"],
    ["WORKERS", "0"],
    ["WORKERS", "two"],
    ["WORKERS", "257"],
    ["PUBLIC_URL", "gateway.example"],
    ["PUBLIC_URL", "ftp://gateway.example"],
    ["PUBLIC_URL", "http://gateway.example/?a=b"],
    ["DATABASE_URL", "mysql://u:p@db/x"],
    ["SANDBOX", "maybe"],
    ["DEFAULT_RPM", "0"],
    ["TRUST_PROXY", "-1"],
    ["TRUST_PROXY", "1.5"],
    ["MEDIA_STORE", "tape"],
    ["REQUEST_TIMEOUT", "0"],
    ["REQUEST_TIMEOUT", "-3"],
    ["REQUEST_TIMEOUT", "1e3"],
    ["IDLE_TIMEOUT", "Infinity"],
    ["VIDEO_TIMEOUT", "2147484"],
    ["LOG_RETENTION_DAYS", "0"],
    ["MAX_BODY_BYTES", "0"],
    ["MAX_BODY_BYTES", "1MB"],
    ["CORS_ORIGINS", "https://a.example/path"],
    ["CORS_ORIGINS", "a.example"],
    ["CORS_ORIGINS", "https://*.example.com"],
    ["S3_BUCKET", "s3://acme-media"],
    ["S3_BUCKET", "https://s3.example/acme-media"],
    ["S3_BUCKET", "acme-media/images"],
    ["FETCH_ALLOW", "10.0.0.0/33"],
    ["RESULT_FETCH_ALLOW", "10.0.0.0/8,example.com"],
    ["LOG_LEVEL", "loud"],
    ["LOG_FORMAT", "xml"],
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317"],
    ["OTEL_EXPORTER_OTLP_HEADERS", "authorization"],
    ["OTEL_EXPORTER_OTLP_HEADERS", "a key=1"],
    ["OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"],
    ["OTEL_RESOURCE_ATTRIBUTES", "a=%zz"],
    ["OTEL_TRACES_SAMPLER", "jaeger_remote"],
    ["OTEL_TRACES_SAMPLER_ARG", "1.5"],
    ["METRICS_PUBLIC", "2"]
  ]
  for (const [variable, value] of wrong) {
    it.effect(`refuse ${variable}=${value} in one line that names it`, function* () {
      const error = yield* refused({ [variable]: value })
      assert.strictEqual(error.variable, variable)
      assert.match(error.message, new RegExp(`^${variable} must be .+\\.$`))
      assert.notInclude(error.message, "\n")
    })
  }

  it.effect("have as many workers as there are cores where WORKERS is auto", function* () {
    assert.strictEqual((yield* readSettings({ WORKERS: "Auto" })).workers, Math.min(availableParallelism(), 32))
    const settings = yield* readSettings({ WORKERS: "auto", DATABASE_URL: "postgres://db/x" })
    assert.strictEqual(settings.workers, availableParallelism())
  })

  it.effect("refuse more workers than the embedded database has connections for", function* () {
    assert.strictEqual((yield* readSettings({ WORKERS: "32" })).workers, 32)
    assert.strictEqual((yield* readSettings({ WORKERS: "33", DATABASE_URL: "postgres://db/x" })).workers, 33)
    assert.strictEqual(
      (yield* refused({ WORKERS: "33" })).message,
      "WORKERS must be at most 32 with the embedded database; set DATABASE_URL for more."
    )
  })

  it.effect("never repeat a wrong value, which may be a secret", function* () {
    for (const variable of ["DATABASE_URL", "PORT", "SANDBOX", "FETCH_ALLOW", "OTEL_EXPORTER_OTLP_HEADERS"]) {
      assert.notInclude((yield* refused({ [variable]: "hunter2" })).message, "hunter2")
    }
    const settings = yield* readSettings({ DATABASE_URL: "postgres://u:hunter2@db/x" })
    assert.notInclude(JSON.stringify(settings), "hunter2")
  })

  it.effect("ask for what S3 needs, one variable at a time", function* () {
    const given: Record<string, string> = { MEDIA_STORE: "s3" }
    for (const variable of ["S3_BUCKET", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]) {
      const error = yield* refused(given)
      assert.strictEqual(error.variable, variable)
      assert.strictEqual(error.message, `${variable} is required with MEDIA_STORE=s3.`)
      given[variable] = "abc"
    }
    const { media } = yield* readSettings({ ...given, S3_ENDPOINT: "http://127.0.0.1:9000/" })
    assert.strictEqual(media.publicUrl, "http://127.0.0.1:9000/abc")
    assert.strictEqual((yield* readSettings(given)).media.publicUrl, "https://abc.s3.us-east-1.amazonaws.com")
  })

  it.scoped("read a .env file under the environment, and drop what is empty", function* () {
    const home = yield* temporaryDirectory
    writeFileSync(
      path.join(home, ".env"),
      "PORT=1111\nHOST=\"0.0.0.0\"\n# a comment\nACME_KEY='quoted #1'\nDATA_DIR=/filed\n"
    )
    const environment = yield* readEnvironment(home, { PORT: "2222", DATA_DIR: "", SANDBOX: "  " })
    assert.deepStrictEqual(environment, { PORT: "2222", HOST: "0.0.0.0", ACME_KEY: "quoted #1" })
  })

  it.scoped("have every variable of a .env file in any encoding and with any line ends", function* () {
    const home = yield* temporaryDirectory
    const text = "DATABASE_URL=postgres://db/gateway\r\nACME_KEY=schlüssel\r\n"
    const expected = { DATABASE_URL: "postgres://db/gateway", ACME_KEY: "schlüssel" }
    const marked = Buffer.from(`\ufeff${text}`, "utf16le")
    const files = [
      Buffer.from(text),
      Buffer.from(`\ufeff${text}`),
      marked,
      Buffer.from(marked).swap16(),
      Buffer.from(text.replaceAll("\r\n", "\r"))
    ]
    for (const bytes of files) {
      writeFileSync(path.join(home, ".env"), bytes)
      assert.deepStrictEqual(yield* readEnvironment(home, {}), expected)
    }
  })

  it.scoped("refuse a .env file with a line that is not an assignment, without quoting it", function* () {
    const home = yield* temporaryDirectory
    const files: ReadonlyArray<readonly [string | Buffer, string]> = [
      [Buffer.from("DATABASE_URL=postgres://db/secret", "utf16le"), "it contains NUL characters: save it as UTF-8"],
      ["# a comment\nDATABASE_URL: postgres://db/secret\nPORT=1", "line 2 is not an assignment such as NAME=value"],
      ["PORT=1\nDATABASE_URL postgres://db/secret", "line 2 is not an assignment such as NAME=value"],
      ["\u200bDATABASE_URL=postgres://db/secret", "line 1 is not an assignment such as NAME=value"],
      ["KEY='a\nb'\n\u00a0DATABASE_URL=secret", "line 3 is not an assignment such as NAME=value"],
      [
        "PORT=1\nKEY='secret\n# why\nexport DATABASE_URL = secret\nNOTE=it's",
        "the quote that opens in line 2 is not closed before DATABASE_URL"
      ],
      ['KEY="secret\nFAL_KEY="secret"', "the quote that opens in line 1 is not closed before FAL_KEY"],
      [
        Buffer.from("DATABASE_URL=postgres://u:gehe\xfcm@db/secret", "latin1"),
        "the value of DATABASE_URL is not valid UTF-8: save the file as UTF-8"
      ]
    ]
    for (const [content, reason] of files) {
      writeFileSync(path.join(home, ".env"), content)
      const { message } = yield* Effect.flip(readEnvironment(home, {}))
      assert.strictEqual(message, `${path.join(home, ".env")} cannot be read: ${reason}.`)
    }
  })

  it.scoped("accept the syntax of shells and containers in a .env file", function* () {
    const home = yield* temporaryDirectory
    const lines = [
      "# it's a comment=\"",
      "  export PORT = 1 # why",
      "FROM_HOST",
      "export FROM_HOST",
      'PEM="-----BEGIN',
      "no assignment",
      '-----END"',
      "my.name-2=it's",
      "URL=postgres://u:p@h/d?a=b",
      Buffer.from("# Schl\xfcssel").toString("latin1"),
      ""
    ]
    writeFileSync(path.join(home, ".env"), lines.join("\n"))
    const { PEM, PORT, URL, "my.name-2": named } = yield* readEnvironment(home, {})
    assert.deepStrictEqual(
      [PORT, PEM, named, URL],
      ["1", "-----BEGIN\nno assignment\n-----END", "it's", "postgres://u:p@h/d?a=b"]
    )
  })

  it.scoped("refuse a variable whose name has invisible characters", function* () {
    const home = yield* temporaryDirectory
    const error = yield* Effect.flip(readEnvironment(home, { "\ufeffDATABASE_URL": "postgres://db/secret" }))
    assert.strictEqual(
      error.message,
      "The name of the variable DATABASE_URL contains invisible characters. Type the name again."
    )
    assert.deepStrictEqual(yield* readEnvironment(home, { GRÖSSE: "1" }), { GRÖSSE: "1" })
  })

  it.scoped("do without a .env file, but not with one that cannot be read", function* () {
    const home = yield* temporaryDirectory
    assert.deepStrictEqual(yield* readEnvironment(home, { PORT: "1" }), { PORT: "1" })
    mkdirSync(path.join(home, ".env"))
    const error = yield* Effect.flip(readEnvironment(home, {}))
    assert.strictEqual(error.variable, ".env")
  })

  it.effect("warn about a misspelt name, beside which the right one is missing", function* () {
    const misspelt = {
      REQUEST_TIMOUT: "REQUEST_TIMEOUT",
      DEFUALT_RPM: "DEFAULT_RPM",
      DATABASE_URI: "DATABASE_URL",
      CORS_ORIGIN: "CORS_ORIGINS",
      WORKER: "WORKERS",
      OTEL_EXPORTER_OTLP_ENDPIONT: "OTEL_EXPORTER_OTLP_ENDPOINT"
    }
    for (const [given, meant] of Object.entries(misspelt)) {
      assert.deepStrictEqual(yield* warned({ [given]: "1" }), [`${given} is not a setting. Did you mean ${meant}?`])
    }
    assert.deepStrictEqual(yield* warned({ LOGLEVEL: "debug", LOG_LEVEL: "info" }), [])
  })

  it.effect("warn about nothing in environments as they are", function* () {
    const ordinary = `PATH HOME HOSTNAME HOSTTYPE PWD OLDPWD USER LOGNAME SHELL SHLVL LANG LC_ALL LC_CTYPE TERM COLORTERM TZ TMPDIR
      MAIL EDITOR PAGER DISPLAY XDG_RUNTIME_DIR XDG_DATA_DIRS DBUS_SESSION_BUS_ADDRESS SSH_CLIENT SSH_CONNECTION SSH_TTY
      NODE_ENV NODE_OPTIONS NODE_PATH NODE_VERSION NODE_UNIQUE_ID NODE_CHANNEL_FD INIT_CWD COLOR npm_config_cache
      npm_lifecycle_event npm_package_version npm_execpath CI DEBUG FORCE_COLOR NO_COLOR NO_PROXY HTTP_PROXY HTTPS_PROXY
      MALLOC_MMAP_THRESHOLD_ INVOCATION_ID JOURNAL_STREAM NOTIFY_SOCKET SYSTEMD_EXEC_PID LISTEN_FDS KUBERNETES_PORT
      KUBERNETES_SERVICE_HOST KUBERNETES_SERVICE_PORT GATEWAY_PORT GATEWAY_SERVICE_HOST GATEWAY_COMMIT GATEWAY_ACTOR
      POD_NAME POD_IP PGHOST PGPORT PGUSER PGDATA PGDATABASE PGCONNECT_TIMEOUT POSTGRES_PASSWORD POSTGRES_DB REDIS_URL
      AWS_REGION AWS_DEFAULT_REGION AWS_PROFILE AWS_ROLE_ARN AWS_WEB_IDENTITY_TOKEN_FILE AWS_SECURITY_TOKEN GS_BUCKET
      GCS_BUCKET OTEL_TRACES_EXPORTER OTEL_METRICS_EXPORTER OTEL_LOGS_EXPORTER OTEL_EXPORTER_OTLP_METRICS_ENDPOINT
      OTEL_EXPORTER_OTLP_LOGS_ENDPOINT OTEL_EXPORTER_OTLP_TIMEOUT OTEL_EXPORTER_OTLP_TRACES_HEADERS
      OTEL_EXPORTER_OTLP_TRACES_PROTOCOL OTEL_PROPAGATORS OTEL_SDK_DISABLED OPENAI_API_KEY ANTHROPIC_API_KEY FAL_KEY
      GEMINI_API_KEY REPLICATE_API_TOKEN WEB_CONCURRENCY RAILS_ENV SECRET_KEY SENTRY_DSN VERCEL_URL NEXT_PUBLIC_URL`
    const environment = Object.fromEntries(ordinary.split(/\s+/).map((name) => [name, "1"]))
    assert.deepStrictEqual(yield* warned(environment), [])
  })

  it.effect("accept proxies with or without a scheme, and prefer lower-case names", function* () {
    const settings = yield* readSettings({
      HTTP_PROXY: "http://upper.example:1",
      http_proxy: "lower.example:3128",
      https_proxy: "http://ann:100%secret@tls.example:3129",
      NO_PROXY: "corp.example"
    })
    assert.deepStrictEqual(proxiesOf(settings), {
      http: "http://lower.example:3128/",
      https: "http://ann:100%25secret@tls.example:3129/",
      except: "corp.example"
    })
    assert.notInclude(JSON.stringify(settings), "secret")
    for (const url of ["socks5://secret.example", "http://ann:%ff@proxy.example:3128"]) {
      const { message } = yield* refused({ HTTPS_PROXY: url })
      assert.strictEqual(message, "HTTPS_PROXY must be the http or https URL of a proxy.")
    }
  })

  it.effect("refuse a value in quotes, which Docker's env files keep", function* () {
    for (const [variable, value] of [
      ["DATABASE_URL", '"postgres://ann:secret@db.example/gateway"'],
      ["HOST", "'0.0.0.0'"],
      ["STRIPE_SECRET_KEY", '"sk_test_secret"']
    ] as const) {
      const { message } = yield* refused({ [variable]: value })
      assert.strictEqual(message, `${variable} has quotes around it, which are part of the value: remove them.`)
    }
  })

  it.scoped("read secrets from the files that NAME_FILE names, and read them again", function* () {
    const home = yield* temporaryDirectory
    const write = (name: string, text: string) => writeFileSync(path.join(home, name), text)
    write("database", "postgres://ann:secret@db.example/gateway\n")
    write("openai", "\ufeffsk-first\r\n")
    write(".env", "OPENAI_API_KEY_FILE=openai\n")
    const own = {
      DATABASE_URL_FILE: path.join(home, "database"),
      CATALOG_FILE: "/etc/catalog.yaml",
      AWS_WEB_IDENTITY_TOKEN_FILE: "/nowhere"
    }
    const environment = yield* readEnvironment(home, own)
    assert.deepStrictEqual(environment, {
      ...own,
      OPENAI_API_KEY_FILE: "openai",
      DATABASE_URL: "postgres://ann:secret@db.example/gateway",
      OPENAI_API_KEY: "sk-first"
    })
    assert.deepStrictEqual(yield* warned(environment), [])
    write("openai", "sk-second")
    assert.strictEqual((yield* readEnvironment(home, own))["OPENAI_API_KEY"], "sk-second")
  })

  it.scoped("refuse an empty secret file, and a secret file beside the secret itself", function* () {
    const home = yield* temporaryDirectory
    writeFileSync(path.join(home, "empty"), "\n")
    const refusal = (own: Environment) => Effect.map(Effect.flip(readEnvironment(home, own)), ({ message }) => message)
    const file = "STRIPE_SECRET_KEY_FILE"
    assert.strictEqual(yield* refusal({ [file]: "nowhere" }), `${file} names an unreadable file.`)
    assert.strictEqual(yield* refusal({ [file]: "empty" }), `${file} names an empty file.`)
    assert.strictEqual(
      yield* refusal({ [file]: "empty", STRIPE_SECRET_KEY: "k" }),
      `${file} cannot be set together with STRIPE_SECRET_KEY.`
    )
  })

  it.scoped(
    "leave the variables of other programs alone, and credentials unset, if a file gives no value",
    function* () {
      const home = yield* temporaryDirectory
      writeFileSync(path.join(home, "token"), "secret")
      const own = { VAULT_TOKEN_FILE: "/nowhere", TLS_KEY_FILE: "token", FAL_KEY_FILE: "" }
      assert.deepStrictEqual(yield* readEnvironment(home, { ...own, TLS_KEY: "key" }), {
        VAULT_TOKEN_FILE: "/nowhere",
        TLS_KEY_FILE: "token"
      })
    }
  )

  it.effect("warn about a public HOST behind a loopback PUBLIC_URL, and about nothing else", function* () {
    for (const HOST of ["0.0.0.0", "::", "192.0.2.1", "gateway.internal"]) {
      assert.lengthOf(yield* warned({ HOST }), 1, HOST)
      assert.lengthOf(yield* warned({ HOST, PUBLIC_URL: "http://[::1]:8787" }), 1, HOST)
      assert.lengthOf(yield* warned({ HOST, PUBLIC_URL: "https://gateway.example" }), 0, HOST)
    }
    for (const HOST of ["127.0.0.1", "127.9.9.9", "::1", "localhost"]) {
      assert.lengthOf(yield* warned({ HOST }), 0, HOST)
    }
  })

  it.effect("warn about a path that is written twice", function* () {
    const s3 = { MEDIA_STORE: "s3", S3_BUCKET: "acme", AWS_ACCESS_KEY_ID: "a", AWS_SECRET_ACCESS_KEY: "b" }
    const otlp = "http://collector:4318/v1/traces"
    const twice: ReadonlyArray<readonly [string, Environment]> = [
      ["PUBLIC_URL ends in /v1", { PUBLIC_URL: "https://gateway.example/v1/" }],
      ["S3_ENDPOINT ends in the bucket name", { ...s3, S3_ENDPOINT: "https://account.r2.example/acme" }],
      ["OTEL_EXPORTER_OTLP_ENDPOINT ends in", { OTEL_EXPORTER_OTLP_ENDPOINT: otlp }]
    ]
    for (const [start, environment] of twice) {
      const [line, ...others] = yield* warned(environment)
      assert.isTrue(line?.startsWith(start), line)
      assert.isEmpty(others)
    }
    const once: ReadonlyArray<Environment> = [
      { PUBLIC_URL: "https://gateway.example/gw" },
      { ...s3, S3_ENDPOINT: "https://account.r2.example" },
      { ...s3, S3_ENDPOINT: "https://account.r2.example/macme" },
      { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: otlp }
    ]
    for (const environment of once) assert.isEmpty(yield* warned(environment))
  })

  it("are all described", () => {
    const described = describeSettings()
    for (const { variable } of Object.values(variables)) assert.match(described, new RegExp(`^${variable} +`, "m"))
    assert.match(described, /^PORT +8787 +/m)
    assert.match(described, /^VIDEO_TIMEOUT +1800 +/m)
  })

  it.effect("name the first wrong one in the order of the help where several are wrong", function* () {
    const error = yield* refused({ METRICS_PUBLIC: "2", WORKERS: "0", PORT: "80x", S3_REGION: "here" })
    assert.strictEqual(error.variable, "PORT")
  })

  it.effect("take payments with both secrets of Stripe, or not at all", function* () {
    const both = { STRIPE_SECRET_KEY: "sk_live_a", STRIPE_WEBHOOK_SECRET: "whsec_b" }
    const { stripe, topUps } = yield* readSettings({ ...both, TOPUP_MIN_USD: "0.50", DISPUTE_POLICY: "ignore" })
    assert.deepInclude(stripe, { isLive: true, apiBase: "https://api.stripe.com" })
    assert.deepStrictEqual(topUps, { minCents: 50, maxCents: 500_000, suspendsDisputed: false })
    assert.notInclude(JSON.stringify(stripe), "sk_live_a")
    for (const [missing, given] of [
      ["STRIPE_WEBHOOK_SECRET", "STRIPE_SECRET_KEY"],
      ["STRIPE_SECRET_KEY", "STRIPE_WEBHOOK_SECRET"]
    ] as const) {
      const { message } = yield* refused({ [given]: both[given] })
      assert.strictEqual(message, `${missing} is required with ${given}. Set both or neither.`)
    }
    const wrong = {
      STRIPE_SECRET_KEY: ["pk_live_a", "a"],
      STRIPE_WEBHOOK_SECRET: ["whsec_", "sk_live_a"],
      TOPUP_MIN_USD: ["0.49", "5.001", "5001"],
      DISPUTE_POLICY: ["refund"]
    }
    for (const [variable, values] of Object.entries(wrong)) {
      for (const value of values) {
        const { message, variable: named } = yield* refused({ ...both, [variable]: value })
        assert.strictEqual(named, variable, value)
        assert.notInclude(message, "sk_live_a")
      }
    }
  })

  it.effect("take a seller, whose address has lines", function* () {
    const seller = { name: "Example Ltd", address: "1 Main Street\nDublin 2", tax_id: "IE1234567X" }
    const set = { SELLER_NAME: "Example Ltd", SELLER_TAX_ID: "IE1234567X" }
    for (const address of ["1 Main Street\\nDublin 2", " 1 Main Street \r\n\nDublin 2\n"]) {
      assert.deepStrictEqual((yield* readSettings({ ...set, SELLER_ADDRESS: address })).seller, seller)
    }
    assert.deepStrictEqual((yield* readSettings({ SELLER_NAME: "Example Ltd" })).seller, { name: "Example Ltd" })
    assert.strictEqual(
      (yield* refused({ SELLER_ADDRESS: "1 Main Street" })).message,
      "SELLER_NAME is required with SELLER_ADDRESS."
    )
    const wrong = {
      SELLER_NAME: ["a\nb", "a\u0007b", "a\u202eb", "a".repeat(101)],
      SELLER_ADDRESS: ["a\tb", "a".repeat(101), "a\\n".repeat(9), "\\n"],
      SELLER_TAX_ID: ["1\u00002", "1".repeat(101)]
    }
    for (const [variable, values] of Object.entries(wrong)) {
      for (const value of values) {
        const error = yield* refused({ ...set, [variable]: value })
        assert.strictEqual(error.variable, variable, value)
        assert.match(error.message, /must be (?:a text of at most 100|at most 8 lines, .*) printable characters/)
      }
    }
  })
})
