import { execFile, execFileSync, fork, spawn } from "node:child_process"
import { once } from "node:events"
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { availableParallelism, tmpdir } from "node:os"
import path from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { parseArgs, promisify } from "node:util"
import autocannon from "autocannon"
import { Client } from "pg"
import { Pool } from "undici"
import { cpuMillis, databaseProcesses, residentMegabytes } from "./processes.mjs"
import { eventsPerStream } from "./servers.mjs"

const { values } = parseArgs({
  options: { seconds: { type: "string", default: "8" }, rounds: { type: "string", default: "3" } }
})
const seconds = Number(values.seconds)
const rounds = Number(values.rounds)
if (!(seconds > 0)) throw new Error("--seconds takes a number above 0")
if (!(Number.isInteger(rounds) && rounds > 0)) throw new Error("--rounds takes an integer above 0")

const connectionCounts = { few: 32, many: 256 }
const steadyRate = 200
const organizations = 64
const program = fileURLToPath(new URL("../../dist/gateway.js", import.meta.url))
const launcher = fileURLToPath(new URL("../../bin/gateway", import.meta.url))
const { scripts } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"))
/** What `npm start` runs, once it has built. */
const startLine = scripts.start
  .replace(/^.*&& exec /, "")
  .split(" ")
  .map((word) => (word === "node" ? process.execPath : word === "bin/gateway" ? launcher : word))
const servers = fileURLToPath(new URL("servers.mjs", import.meta.url))

const stop = new AbortController()
const { signal } = stop
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(name, () => stop.abort(new Error(`${name}: stopped before the end`)))
}

const cleanups = []
const print = (line) => process.stdout.write(`${line}\n`)
const progress = (line) => process.stderr.write(`${line}\n`)

/** The proxy and the gateway get one core, everything else another. */
const cores = (() => {
  if (availableParallelism() < 2) return undefined
  try {
    const [first, second] = execFileSync("taskset", ["-cp", String(process.pid)], { encoding: "utf8" })
      .replace(/^.*: /s, "")
      .trim()
      .split(",")
      .flatMap((range) => {
        const [from, to = from] = range.split("-").map(Number)
        return Array.from({ length: to - from + 1 }, (_, n) => from + n)
      })
    return { measured: first, rest: second }
  } catch {
    return undefined
  }
})()
const pin = (pid, core) => execFileSync("taskset", ["-acp", String(core), String(pid)], { stdio: "ignore" })

const stopChild = async (child, name) => {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, "exit")
  child.kill(name)
  const late = setTimeout(() => child.kill("SIGKILL"), 30_000)
  await exited
  clearTimeout(late)
}

const startServer = async (role, ...args) => {
  const child = fork(servers, [role, ...args], { execArgv: ["--max-semi-space-size=64"] })
  cleanups.push(() => stopChild(child, "SIGKILL"))
  const [port] = await once(child, "message", { signal })
  return { pid: child.pid, url: `http://127.0.0.1:${port}` }
}

const makeDirectory = () => {
  const directory = mkdtempSync(path.join(tmpdir(), "gateway-bench-"))
  // The embedded server may run as another user.
  chmodSync(directory, 0o755)
  cleanups.push(async () => {
    const postmaster = path.join(directory, "postgres/data/postmaster.pid")
    for (let waited = 0; existsSync(postmaster) && waited < 10_000; waited += 50) await sleep(50)
    rmSync(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  })
  return directory
}

const administer = async (url, statement) => {
  const client = new Client(url)
  await client.connect()
  try {
    return await client.query(statement)
  } finally {
    await client.end()
  }
}

/** A database of its own on the server of DATABASE_URL; without one the gateway starts its embedded server. */
const makeDatabase = async () => {
  const server = process.env.DATABASE_URL
  if (!server) return {}
  const { rows } = await administer(server, "SHOW fsync")
  if (rows[0].fsync !== "on") progress("The server of DATABASE_URL runs without fsync: its figures are too good.")
  const name = `gateway_bench_${process.pid}`
  await administer(server, `CREATE DATABASE ${name}`)
  cleanups.push(() => administer(server, `DROP DATABASE ${name} WITH (FORCE)`))
  const url = new URL(server)
  url.pathname = `/${name}`
  return { DATABASE_URL: url.href }
}

const catalog = (origin) =>
  JSON.stringify({
    providers: { fake: { adapter: "openai-chat", base_url: `${origin}/v1`, credential: "BENCH_KEY" } },
    families: { A: { sampling: true, max_output_policy: "clamp" } },
    models: [
      {
        id: "tiny",
        surface: "chat",
        family: "A",
        context_length: 100_000,
        max_output: 8_000,
        pricing: { prompt_per_1m_usd: 1.5, completion_per_1m_usd: 7.5 },
        created: "2026-01-01",
        routes: [{ provider: "fake", model: "theirs" }]
      }
    ]
  })

/** Starts it on the core for the rest, where the embedded PostgreSQL that it starts remains. */
const startGateway = async (cwd, env) => {
  const [file, ...args] = cores ? ["taskset", "-c", String(cores.rest), ...startLine] : startLine
  const child = spawn(file, args, {
    cwd,
    env,
    stdio: ["ignore", "pipe", "inherit"]
  })
  cleanups.push(() => stopChild(child, "SIGTERM"))
  const url = await new Promise((resolve, reject) => {
    let printed = ""
    child.stdout.setEncoding("utf8").on("data", (text) => {
      printed += text
      const [, address] = /listening on (http:\/\/\S+)\/v1/.exec(printed) ?? []
      if (address) resolve(address)
    })
    child.on("exit", (code) => reject(new Error(`the gateway ended with ${code}\n${printed}`)))
    signal.addEventListener("abort", () => reject(signal.reason))
  })
  return { pid: child.pid, url }
}

const run = promisify(execFile)
const command = async (cwd, env, ...args) => {
  const { stdout } = await run(process.execPath, [program, ...args], { cwd, env, signal })
  return stdout
}

const makeKeys = async (cwd, env) => {
  const names = Array.from({ length: organizations }, (_, n) => `bench-${n}`)
  const secrets = []
  const makeNext = async () => {
    for (let name = names.shift(); name !== undefined; name = names.shift()) {
      await command(cwd, env, "orgs", "create", name, "--credits", "1000000")
      const { key } = JSON.parse(
        await command(cwd, env, "keys", "create", "--org", name, "--rpm", "100000000", "--json")
      )
      secrets.push(key)
    }
  }
  await Promise.all(Array.from({ length: 4 }, makeNext))
  return secrets
}

const words = "The gateway keeps a prepaid balance for each organization and charges what a request has used. "
const chat = (content, more = {}) => JSON.stringify({ model: "tiny", messages: [{ role: "user", content }], ...more })
const bodies = {
  small: chat("Say hello."),
  large: chat(words.repeat(Math.ceil(30_000 / words.length)).slice(0, 30_000)),
  stream: chat("Count to two hundred.", { stream: true })
}

const quantile = (sorted, q) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN
const median = (numbers) =>
  quantile(
    numbers.toSorted((a, b) => a - b),
    0.5
  )

const requestsWith = (body, keys) =>
  keys.map((key) => ({
    method: "POST",
    path: "/v1/chat/completions",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body
  }))

const summarize = (latencies, rest) => {
  latencies.sort((a, b) => a - b)
  return { ...rest, p50: quantile(latencies, 0.5), p99: quantile(latencies, 0.99) }
}

/** Keeps all connections busy. Each goes through the keys, and begins at another one. */
const saturate = async ({ body, connections = connectionCounts.few, duration = seconds, keys, url }) => {
  const requests = requestsWith(body, keys)
  let started = 0
  const running = autocannon({
    url,
    connections,
    duration,
    requests,
    setupClient: (client) => {
      const first = Math.floor((started++ * requests.length) / connections)
      client.setRequests([...requests.slice(first), ...requests.slice(0, first)])
    }
  })
  const end = () => running.stop()
  signal.addEventListener("abort", end)
  // The result's own latencies are whole milliseconds.
  const latencies = []
  running.on("response", (_client, _status, _bytes, milliseconds) => latencies.push(milliseconds))
  const result = await running
  signal.removeEventListener("abort", end)
  signal.throwIfAborted()
  return summarize(latencies, {
    requests: result["2xx"],
    perSecond: result["2xx"] / result.duration,
    failures: result.non2xx + result.errors + result.timeouts
  })
}

/** Sends a request every few milliseconds; autocannon would send the requests of each second in one burst. */
const pace = async ({ body, duration = seconds, keys, url }) => {
  const requests = requestsWith(body, keys)
  const pool = new Pool(url, { connections: connectionCounts.few })
  const latencies = []
  let failures = 0
  const send = async (request) => {
    const began = performance.now()
    try {
      const { body: answer, statusCode } = await pool.request(request)
      await answer.dump()
      if (statusCode !== 200) throw new Error(`status ${statusCode}`)
      latencies.push(performance.now() - began)
    } catch {
      failures += 1
    }
  }
  const sent = []
  const began = performance.now()
  const wanted = steadyRate * duration
  while (sent.length < wanted && !signal.aborted) {
    sent.push(send(requests[sent.length % requests.length]))
    const wait = began + (sent.length * 1_000) / steadyRate - performance.now()
    if (wait > 0) await sleep(wait)
  }
  await Promise.all(sent)
  const elapsed = (performance.now() - began) / 1_000
  await pool.close()
  signal.throwIfAborted()
  return summarize(latencies, { requests: latencies.length, perSecond: latencies.length / elapsed, failures })
}

const measures = [
  { name: "few", body: bodies.small, by: ["direct", "bare", "gateway"] },
  { name: "many", body: bodies.small, by: ["direct", "bare", "gateway"], connections: connectionCounts.many },
  { name: "oneOrganization", body: bodies.small, by: ["gateway"], keyCount: 1 },
  { name: "large", body: bodies.large, by: ["direct", "bare", "gateway"] },
  { name: "steady", body: bodies.small, by: ["direct", "bare", "gateway"], load: pace },
  { name: "streams", body: bodies.stream, by: ["direct", "bare", "gateway"] }
]

/** Everything in turns, so that all see the same machine; a slow minute of it spoils one round. */
const measureAll = async ({ database, keys, pids, urls }) => {
  const results = []
  progress("Warming up")
  for (const { body, by } of measures) {
    for (const server of by) await saturate({ url: urls[server], body, keys, duration: Math.min(3, seconds) })
  }
  for (let round = 1; round <= rounds; round += 1) {
    for (const { body, by, connections, keyCount = keys.length, load = saturate, name } of measures) {
      for (const server of by) {
        const cpuOf = () => [cpuMillis([pids[server]]), cpuMillis(database())]
        const before = cpuOf()
        const result = await load({ url: urls[server], body, connections, keys: keys.slice(0, keyCount) })
        const [own, stored] = cpuOf().map((after, index) => (after - before[index]) / result.requests)
        results.push({ round, name, server, own, stored, ...result })
        progress(
          `round ${round} of ${rounds}, ${name}, ${server}: ${result.perSecond.toFixed(0)}/s, p50 ${result.p50.toFixed(1)} ms, p99 ${result.p99.toFixed(1)} ms, ${result.failures} failed`
        )
      }
    }
  }
  return results
}

const table = (results, memory) => {
  const of = (name, server, field = "perSecond") =>
    median(results.filter((one) => one.name === name && one.server === server).map((one) => one[field]))
  const whole = (value) => Math.round(value).toLocaleString("en")
  const rates = (title, name, times = 1) => {
    const [direct, bare, gateway] = ["direct", "bare", "gateway"].map((server) => of(name, server) * times)
    return [title, whole(direct), whole(bare), whole(gateway), `${(gateway / bare).toFixed(2)} of bare`]
  }
  const latency = (title, field) => {
    const [direct, bare, gateway] = ["direct", "bare", "gateway"].map((server) => of("steady", server, field))
    return [title, ...[direct, bare, gateway].map((one) => one.toFixed(2)), `${(gateway - bare).toFixed(2)} added`]
  }
  const [all, one] = [of("few", "gateway"), of("oneOrganization", "gateway")]
  const cpu = (title, name) => {
    const bare = of(name, "bare", "own")
    const costs = [of(name, "gateway", "own"), of(name, "gateway", "stored")]
    const shown = (value, digits) => (Number.isFinite(value) ? value.toFixed(digits) : "?")
    const [own, stored] = costs.map((cost) => shown(cost / bare, 1))
    const spent = costs.map((cost) => shown(cost, 3)).join(" + ")
    return [title, "", shown(bare, 3), spent, `${own} + ${stored} of bare`]
  }
  const { few, many } = connectionCounts
  const rows = [
    ["", "direct", "bare proxy", "gateway", "gateway against bare proxy"],
    ["---", "---:", "---:", "---:", "---"],
    rates(`small JSON chats/s, ${few} connections`, "few"),
    rates(`small JSON chats/s, ${many} connections`, "many"),
    cpu(`ms of CPU a chat, ${few} connections: process + PostgreSQL`, "few"),
    cpu(`ms of CPU a chat, ${many} connections: process + PostgreSQL`, "many"),
    rates("JSON chats/s with a body of 30 kB", "large"),
    latency(`p50 at ${steadyRate}/s, ms`, "p50"),
    latency(`p99 at ${steadyRate}/s, ms`, "p99"),
    rates(`events/s in streams of ${eventsPerStream}`, "streams", eventsPerStream),
    ["small JSON chats/s of one organization", "", "", whole(one), `${(one / all).toFixed(2)} of ${organizations}`],
    ["MB of memory, idle", "", whole(memory.bare), whole(memory.gateway), ""]
  ]
  return rows.map((cells) => `| ${cells.join(" | ")} |`).join("\n")
}

const main = async () => {
  const cwd = makeDirectory()
  const env = {
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    TZ: "UTC",
    PORT: "0",
    DATA_DIR: cwd,
    CATALOG_FILE: path.join(cwd, "catalog.json"),
    BENCH_KEY: "secret",
    SANDBOX: "false",
    LOG_LEVEL: "warning",
    ...(await makeDatabase())
  }
  const upstream = await startServer("upstream")
  const proxy = await startServer("proxy", upstream.url)
  writeFileSync(env.CATALOG_FILE, catalog(upstream.url))
  const gateway = await startGateway(cwd, env)
  progress(`Making ${organizations} organizations`)
  const keys = await makeKeys(cwd, env)
  if (cores) {
    for (const pid of [proxy.pid, gateway.pid]) pin(pid, cores.measured)
    for (const pid of [upstream.pid, process.pid]) pin(pid, cores.rest)
  }
  const memory = { bare: residentMegabytes(proxy.pid), gateway: residentMegabytes(gateway.pid) }

  const results = await measureAll({
    database: () => databaseProcesses(cwd),
    keys,
    pids: { direct: upstream.pid, bare: proxy.pid, gateway: gateway.pid },
    urls: { direct: upstream.url, bare: proxy.url, gateway: gateway.url }
  })
  print(
    `${organizations} organizations, ${rounds} rounds of ${seconds} s, Node.js ${process.versions.node}, ${
      cores ? "one core for the measured process and one for the rest" : "no cores of their own"
    }`
  )
  print(table(results, memory))
  const failures = results.reduce((sum, one) => sum + one.failures, 0)
  if (failures > 0) {
    print(`${failures} requests failed`)
    process.exitCode = 1
  }
  print((await command(cwd, env, "ledger", "verify")).trim())
}

try {
  await main()
} catch (error) {
  process.exitCode = 1
  const { reason } = signal
  progress(reason instanceof Error ? reason.message : String(error?.stack ?? error))
} finally {
  for (const cleanUp of cleanups.toReversed()) await cleanUp().catch((error) => progress(`Not cleaned up: ${error}`))
}
