// Prints what the built gateway takes of memory, in sandbox mode with its embedded database, through idleness, chats,
// hostile bodies and stalled uploads:  npm run build && node test/bench/memory.mjs   Needs Linux.
import { execFileSync, spawn } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { Agent, request } from "node:http"
import net from "node:net"
import { tmpdir } from "node:os"
import path from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { build } from "esbuild"

const warmChats = 4_000
const uploads = 415
const uploadBytes = 1_000_000
const heldMillis = 15_000

const root = path.resolve(import.meta.dirname, "../..")
const { scripts } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"))
const command = scripts.start.split("&&").at(-1).trim()

const { outputFiles } = await build({
  entryPoints: [path.join(root, "test/http/body/HostileBodies.ts")],
  bundle: true,
  write: false,
  platform: "node",
  format: "esm",
  logLevel: "error"
})
const source = Buffer.from(outputFiles[0].contents).toString("base64")
const { hostileBodies, model } = await import(`data:text/javascript;base64,${source}`)

const directory = mkdtempSync(path.join(tmpdir(), "gateway-memory-"))
const env = {
  ...process.env,
  DATA_DIR: directory,
  PORT: "0",
  SANDBOX: "true",
  DEFAULT_RPM: "1000000",
  LOG_LEVEL: "error"
}

const residentMegabytes = (pid) =>
  Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]) / 1024)

/** Starts the gateway as `npm start` does, and waits until it is ready. */
const start = async () => {
  const from = performance.now()
  const child = spawn("sh", ["-c", command], { cwd: root, env, stdio: ["ignore", "pipe", "inherit"] })
  const url = await new Promise((resolve, reject) => {
    let text = ""
    child.stdout.setEncoding("utf8").on("data", (chunk) => {
      text += chunk
      const address = /listening on (http:\/\/\S+)\/v1/.exec(text)?.[1]
      if (address !== undefined) resolve(address)
    })
    child.on("close", () => reject(new Error(`the gateway ended: ${text}`)))
  })
  while ((await fetch(`${url}/readyz`)).status !== 200) await sleep(5)
  return { child, url, readyMillis: Math.round(performance.now() - from) }
}

const stop = (child) =>
  new Promise((resolve) => {
    child.on("close", resolve)
    child.kill("SIGTERM")
  })

const gateway = (...args) =>
  JSON.parse(execFileSync(process.execPath, [path.join(root, "dist/gateway.js"), ...args, "--json"], { env }))

const openAccounts = (count) =>
  Array.from({ length: count }, (_, at) => {
    gateway("orgs", "create", `bench-${at}`, "--credits", "1000000")
    return gateway("keys", "create", "--org", `bench-${at}`, "--rpm", "1000000").key
  })

const agent = new Agent({ keepAlive: true })

const send = (url, key, { path: at, type = "application/json" }, body) =>
  new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${key}`, "content-type": type, "content-length": body.length }
    const sent = request(`${url}/v1${at}`, { method: "POST", agent, headers }, (response) => {
      response.resume().on("end", () => resolve(response.statusCode))
    })
    sent.on("error", reject).end(body)
  })

const chat = Buffer.from(JSON.stringify({ model, max_tokens: 50, messages: [{ role: "user", content: "Say hello." }] }))

const inParallel = async (width, tasks) => {
  const queue = tasks[Symbol.iterator]()
  await Promise.all(
    Array.from({ length: width }, async () => {
      for (const task of queue) await task()
    })
  )
}

const chats = (url, keys, count) =>
  inParallel(
    32,
    Array.from({ length: count }, (_, at) => async () => {
      const status = await send(url, keys[at % keys.length], { path: "/chat/completions" }, chat)
      if (status !== 200) throw new Error(`a chat was answered ${status}`)
    })
  )

/** Each sends all of its body but the last bytes. */
const stall = (url, key) => {
  const { hostname, port } = new URL(url)
  const socket = net.connect(Number(port), hostname).on("error", () => {})
  socket
    .resume()
    .write(
      `POST /v1/videos HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${key}\r\n` +
        `content-type: multipart/form-data; boundary=b\r\ncontent-length: ${uploadBytes + 100}\r\n\r\n`
    )
  socket.write(Buffer.alloc(uploadBytes, "a"))
  return socket
}

const first = await start()
try {
  const keys = openAccounts(8)
  console.log(`first start: ready in ${first.readyMillis} ms`)
  await stop(first.child)
  const { child, readyMillis, url } = await start()
  const show = (what) => {
    const megabytes = residentMegabytes(child.pid)
    console.log(`${what}: ${megabytes} MB`)
    return megabytes
  }
  try {
    console.log(`second start: ready in ${readyMillis} ms`)
    await sleep(2_000)
    show("idle")
    await chats(url, keys, 200)
    show("after 200 chats")
    await chats(url, keys, warmChats)
    await sleep(2_000)
    const warm = show(`after ${200 + warmChats} chats`)
    const bodies = hostileBodies.map((hostile) => ({ hostile, body: Buffer.from(hostile.make()) }))
    const tasks = bodies.map(({ body, hostile }, at) => async () => {
      const status = await send(url, keys[at % keys.length], hostile, body)
      if (status !== hostile.status) console.log(`${hostile.name}: ${status} instead of ${hostile.status}`)
    })
    await inParallel(1, tasks)
    show(`after ${tasks.length} hostile bodies, one after another`)
    await inParallel(8, tasks)
    show("after the same, eight at a time")
    const sockets = Array.from({ length: uploads }, (_, at) => stall(url, keys[at % keys.length]))
    await sleep(heldMillis)
    show(`while ${uploads} uploads of ${uploadBytes} bytes stand still`)
    for (const socket of sockets) socket.destroy()
    let waited = 0
    for (const seconds of [5, 15, 30]) {
      await sleep((seconds - waited) * 1000)
      waited = seconds
      const left = show(`${seconds} s after they were dropped`)
      console.log(`  ${left - warm} MB above the ${warm} MB of before the hostile bodies`)
    }
  } finally {
    await stop(child)
  }
} finally {
  agent.destroy()
  rmSync(directory, { recursive: true, force: true })
}
