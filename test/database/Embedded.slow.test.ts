import { spawn, spawnSync } from "node:child_process"
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import path from "node:path"
import { Context, Effect, Exit, Layer, Option, Scope } from "effect"
import { Embedded } from "../../src/database/Embedded.ts"
import { afterAll, assert, describe, it } from "../harness/It.ts"
import { isAlive } from "../harness/temporary.ts"
import {
  allGone,
  attacher,
  bundle,
  eventually,
  postmasterPid,
  processesOf,
  query,
  type Site,
  temporarySite
} from "./EmbeddedDatabase.ts"

const scope = Effect.runSync(Scope.make())
const program = Effect.runSync(Effect.cached(Scope.extend(bundle("test/database/fixtures/attach.ts"), scope)))
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

const isWhole = ({ home }: Site) => {
  const log = readFileSync(path.join(home, "log"), "utf8")
  return log.trimEnd().endsWith("database system is shut down") && !log.includes("not properly shut down")
}

/** What the server says first to a program of this account that wants to be its superuser. */
const logIn = (socket: string, account: { readonly uid?: number; readonly gid?: number }) => {
  const script = `
    const words = Buffer.from("user\\0postgres\\0database\\0gateway\\0\\0")
    const head = Buffer.alloc(8)
    head.writeInt32BE(words.length + 8)
    head.writeInt32BE(196608, 4)
    const socket = require("node:net").connect(process.argv[1], () => socket.write(Buffer.concat([head, words])))
    socket.on("error", (error) => console.log(error.message))
    socket.once("data", (data) => { console.log(String(data)); socket.destroy() })`
  const { stderr, stdout } = spawnSync(process.execPath, ["-e", script, socket], {
    ...account,
    cwd: "/",
    encoding: "utf8"
  })
  return stdout || stderr
}

const signalSupervisors = (site: Site, signal: NodeJS.Signals) => {
  const supervisors = processesOf(site).filter(({ command }) => command.startsWith("/bin/sh"))
  for (const { pid } of supervisors) process.kill(pid, signal)
  return supervisors.length
}

// Who is left running is read from /proc.
describe.skipIf(process.platform !== "linux")("Embedded", () => {
  it.scopedLive("is one server, there as long as anyone holds it, and shut down cleanly afterwards", function* () {
    const site = yield* temporarySite()
    const entry = yield* program
    const first = yield* attacher(entry, site)
    const pid = postmasterPid(site)
    const second = yield* attacher(entry, site)
    assert.strictEqual(postmasterPid(site), pid)
    yield* first.end
    const third = yield* attacher(entry, site)
    yield* second.end
    assert.deepStrictEqual(yield* query(site, "SELECT 1 AS one"), [{ one: 1 }])
    assert.strictEqual(postmasterPid(site), pid)
    yield* third.end
    yield* allGone(site)
    assert.isUndefined(postmasterPid(site))
    assert.isTrue(isWhole(site))
    assert.deepStrictEqual(readdirSync(path.join(site.home, "attachments")), [])
  })

  it.scopedLive("loses only the user that is killed, and ends with the last one killed", function* () {
    const site = yield* temporarySite()
    const entry = yield* program
    const starter = yield* attacher(entry, site)
    const other = yield* attacher(entry, site)
    const pid = postmasterPid(site)
    yield* starter.kill
    assert.deepStrictEqual(yield* query(site, "SELECT 1 AS one"), [{ one: 1 }])
    const late = yield* attacher(entry, site)
    assert.strictEqual(postmasterPid(site), pid)
    yield* other.kill
    yield* late.kill
    yield* allGone(site)
    assert.isTrue(isWhole(site))
  })

  it.scopedLive("is built once when several start on an empty directory", function* () {
    const site = yield* temporarySite()
    const entry = yield* program
    const attachers = yield* Effect.replicateEffect(attacher(entry, site), 4, { concurrency: "unbounded" })
    yield* eventually("one server is left", () => {
      const servers = processesOf(site).filter(({ command }) => !command.startsWith("/bin/sh"))
      return servers.length === 1 && servers[0]?.pid === postmasterPid(site)
    })
    assert.deepStrictEqual(
      readdirSync(site.home).filter((name) => name.startsWith("initdb")),
      []
    )
    assert.deepStrictEqual(yield* query(site, "SELECT current_database() AS name"), [{ name: "gateway" }])
    yield* Effect.forEach(attachers, ({ kill }) => kill, { concurrency: "unbounded" })
    yield* allGone(site)
    assert.isTrue(isWhole(site))
  })

  it.scopedLive("comes back with its data after the server itself was killed", function* () {
    const site = yield* temporarySite()
    const entry = yield* program
    const holders = yield* Effect.replicateEffect(attacher(entry, site), 2, { concurrency: "unbounded" })
    yield* query(site, "CREATE TABLE kept AS SELECT 42 AS answer")
    const before = postmasterPid(site) ?? assert.fail("no server")
    process.kill(before, "SIGKILL")
    yield* eventually("another server is ready", async () => {
      const pid = postmasterPid(site)
      return pid !== undefined && pid !== before && isAlive(pid)
    })
    const late = yield* attacher(entry, site)
    assert.deepStrictEqual(yield* query(site, "SELECT answer FROM kept"), [{ answer: 42 }])
    yield* Effect.forEach([...holders, late], ({ end }) => end)
    yield* allGone(site)
  })

  it.scopedLive("is not orphaned by the death of its supervisor", function* () {
    const site = yield* temporarySite()
    const entry = yield* program
    const holder = yield* attacher(entry, site)
    const before = postmasterPid(site)
    assert.strictEqual(signalSupervisors(site, "SIGKILL"), 2)
    yield* eventually("a supervised server replaces it", () => {
      const pid = postmasterPid(site)
      return pid !== undefined && pid !== before
    })
    yield* attacher(entry, site).pipe(Effect.flatMap(({ end }) => end))
    yield* holder.kill
    yield* allGone(site)
    assert.isFalse(existsSync(path.join(site.home, "data/postmaster.pid")))
  })

  it.scopedLive("counts nobody as attached before the supervisor has said so, though the server answers", function* () {
    const site = yield* temporarySite()
    const attach = Layer.build(Embedded.layer(site))
    yield* attach
    const pid = postmasterPid(site)
    signalSupervisors(site, "SIGSTOP")
    assert.isTrue(Option.isNone(yield* Effect.timeoutOption(Effect.scoped(attach), "1 second")))
    assert.deepStrictEqual(yield* query(site, "SELECT 1 AS one"), [{ one: 1 }])
    signalSupervisors(site, "SIGCONT")
    yield* attach
    assert.strictEqual(postmasterPid(site), pid)
  })

  it.scopedLive(
    "serves users that come and go across its shutdowns",
    function* () {
      const site = yield* temporarySite()
      const pids = new Set<number | undefined>()
      const visit = Effect.gen(function* () {
        yield* Layer.build(Embedded.layer(site))
        const pid = postmasterPid(site)
        for (let round = 0; round < 4; round++) yield* query(site, "SELECT pg_sleep(0.005)")
        assert.strictEqual(postmasterPid(site), pid)
        pids.add(pid)
      }).pipe(Effect.scoped)
      const crowd = Effect.forEach([1, 2, 3], () => Effect.repeatN(visit, 2), { concurrency: "unbounded" })
      yield* crowd
      yield* allGone(site)
      // Each pause ends at another moment of the shutdown that the last crowd's end began.
      yield* Effect.forEach([0, 20, 80], (pause) => Effect.zipRight(Effect.sleep(pause), crowd))
      assert.isAbove(pids.size, 1)
      yield* allGone(site)
      assert.isTrue(isWhole(site))
    },
    180_000
  )

  it.scopedLive("starts though the recorded pid belongs to another process by now", function* () {
    const site = yield* temporarySite()
    yield* Effect.scoped(Layer.build(Embedded.layer(site)))
    yield* allGone(site)
    const { gid, uid } = statSync(site.home)
    const stranger = yield* Effect.acquireRelease(
      Effect.sync(() => spawn("sleep", ["600"], { uid, gid, stdio: "ignore" })),
      (child) => Effect.sync(() => child.kill("SIGKILL"))
    )
    writeFileSync(path.join(site.home, "data/postmaster.pid"), `${stranger.pid}\n${site.home}/data\n1\n5432\n`)
    yield* Layer.build(Embedded.layer(site))
    assert.deepStrictEqual(yield* query(site, "SELECT 1 AS one"), [{ one: 1 }])
    assert.isNull(stranger.exitCode)
  })

  it.scopedLive("starts over lock files that a crash left empty or garbled", function* () {
    const site = yield* temporarySite()
    const visit = Effect.gen(function* () {
      yield* Layer.build(Embedded.layer({ ...site, startTimeout: "10 seconds" }))
      assert.deepStrictEqual(yield* query(site, "SELECT 1 AS one"), [{ one: 1 }])
    }).pipe(Effect.scoped, Effect.zipRight(allGone(site)))
    yield* visit
    for (const text of ["", "\0".repeat(90), "pid\n/data\n", "-0\n"]) {
      writeFileSync(path.join(site.home, "data/postmaster.pid"), text)
      writeFileSync(path.join(site.home, "run/.s.PGSQL.5432.lock"), text)
      yield* visit
    }
    const { gid, uid } = statSync(site.home)
    const stranger = yield* Effect.acquireRelease(
      Effect.sync(() => spawn("sleep", ["600"], { uid, gid, stdio: "ignore" })),
      (child) => Effect.sync(() => child.kill("SIGKILL"))
    )
    writeFileSync(path.join(site.home, "run/.s.PGSQL.5432.lock"), `${stranger.pid}\n`)
    yield* visit
    assert.isNull(stranger.exitCode)
    assert.deepStrictEqual(
      readdirSync(path.join(site.home, "data")).filter((name) => name.includes(".stale")),
      []
    )
  })

  it.scopedLive("leaves the empty lock file of a server that is just starting", function* () {
    const site = yield* temporarySite()
    yield* Effect.scoped(Layer.build(Embedded.layer(site)))
    yield* allGone(site)
    const file = path.join(site.home, "data/postmaster.pid")
    writeFileSync(file, "")
    const starting = yield* Effect.acquireRelease(
      Effect.sync(() => spawn("sh", ["-c", "sleep 600 & wait", "postgres", "-D", path.join(site.home, "data")])),
      (child) => Effect.sync(() => child.kill("SIGKILL"))
    )
    const { message } = yield* Effect.flip(Layer.build(Embedded.layer({ ...site, startTimeout: "3 seconds" })))
    assert.match(message, /lock file "postmaster.pid" is empty/)
    assert.strictEqual(readFileSync(file, "utf8"), "")
    starting.kill("SIGKILL")
    yield* Layer.build(Embedded.layer(site))
  })

  it.scopedLive("listens in a short directory when the data directory's path is long", function* () {
    const { dataDir } = yield* temporarySite()
    const deep = path.join(dataDir, "x".repeat(100))
    const context = yield* Layer.build(Embedded.layer({ dataDir: deep }))
    const { host } = Context.get(context, Embedded)
    yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(host, { recursive: true, force: true })))
    assert.isBelow(Buffer.byteLength(host), 80)
    assert.strictEqual(statSync(host).mode & 0o777, 0o700)
  })

  it.scopedLive("runs where only root may go", function* () {
    if (process.getuid?.() !== 0) return
    const { dataDir } = yield* temporarySite()
    chmodSync(dataDir, 0o700)
    const site = { dataDir, home: path.join(dataDir, "postgres") }
    yield* Effect.scoped(Layer.build(Embedded.layer(site)))
    yield* allGone(site)
    yield* Layer.build(Embedded.layer(site))
    assert.deepStrictEqual(yield* query(site, "SELECT 1 AS one"), [{ one: 1 }])
    assert.strictEqual(statSync(site.home).uid, 0)
  })

  it.scopedLive(
    "lets in root and not the account that it runs as, in directories made by older versions too",
    function* () {
      if (process.getuid?.() !== 0) return
      const site = yield* temporarySite()
      yield* Layer.build(Embedded.layer(site))
      assert.match(readFileSync(path.join(site.home, "data/pg_hba.conf"), "utf8"), /^local\s+all\s+all\s+trust$/m)
      const { gid, uid } = statSync(site.home)
      const socket = path.join(site.home, "run/.s.PGSQL.5432")
      assert.match(logIn(socket, { uid, gid }), /Peer authentication failed/)
      assert.match(logIn(socket, {}), /^R/)
      assert.deepStrictEqual(yield* query(site, "SELECT 1 AS one"), [{ one: 1 }])
    }
  )

  it.scopedLive("gives root's data to an account without rights where that may go", function* () {
    if (process.getuid?.() !== 0) return
    const site = yield* temporarySite()
    yield* Layer.build(Embedded.layer(site))
    assert.strictEqual(statSync(site.home).uid, 65534)
    assert.strictEqual(statSync(site.home).mode & 0o777, 0o700)
  })
})
