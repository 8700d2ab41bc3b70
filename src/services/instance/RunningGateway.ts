import { readdir, readFile, rename, rm, writeFile } from "node:fs/promises"
import { hostname } from "node:os"
import path from "node:path"
import { Array as Arr, Clock, Effect, Option, Order, Schema } from "effect"
import { isProcessAlive, makeFolders } from "../runtime/System.ts"

/** The address of a running gateway, for commands on the same machine. */
const RunningGateway = Schema.Struct({
  /** Containers may share a data directory. */
  host: Schema.String,
  pid: Schema.Number,
  /** Unix milliseconds. */
  startedAt: Schema.Number,
  /** Its address for clients on this machine. */
  url: Schema.String,
  /** The base of links. */
  publicUrl: Schema.String
})
export type RunningGateway = typeof RunningGateway.Type

const Text = Schema.parseJson(RunningGateway)
const encode = Schema.encodeSync(Text)
const decode = Schema.decodeUnknownOption(Text)

const directoryOf = (dataDir: string) => path.join(dataDir, "instances")

/** Reads the records of this machine's gateways, running or not, with their files. */
const readAll = (dataDir: string) =>
  Effect.promise(async () => {
    const names = await readdir(directoryOf(dataDir)).catch(() => [])
    const files = names.filter((name) => name.endsWith(".json")).map((name) => path.join(directoryOf(dataDir), name))
    const read = async (file: string) =>
      Option.map(decode(await readFile(file, "utf8").catch(() => "")), (gateway) => ({ file, gateway }))
    return Arr.getSomes(await Promise.all(files.map(read))).filter(({ gateway }) => gateway.host === hostname())
  })

/**
 * Records the gateway's address for commands, whose environment may name another port. If the data directory cannot be
 * written, the gateway still starts.
 */
export const recordRunning = Effect.fn("RunningGateway.record")(function* (
  dataDir: string,
  addresses: Pick<RunningGateway, "url" | "publicUrl">,
  pid: number
) {
  const ended = (yield* readAll(dataDir)).filter(({ gateway }) => !isProcessAlive(gateway.pid))
  const file = path.join(directoryOf(dataDir), `${pid}.json`)
  const part = `${file}.${process.pid}.part`
  const text = encode({ ...addresses, host: hostname(), pid, startedAt: yield* Clock.currentTimeMillis })
  const write = async () => {
    await Promise.allSettled(ended.map(({ file }) => rm(file)))
    await makeFolders(directoryOf(dataDir))
    await writeFile(part, text)
    await rename(part, file)
  }
  yield* Effect.catchAll(Effect.tryPromise(write), ({ error }) =>
    Effect.logDebug(`Commands will not find this gateway's address: ${String(error)}`)
  )
})

const newestFirst = Order.reverse(Order.mapInput(Order.number, ({ startedAt }: RunningGateway) => startedAt))

const answers = ({ url }: RunningGateway) =>
  Effect.tryPromise(async (signal) => (await fetch(`${url}/healthz`, { signal })).ok).pipe(
    Effect.timeout("2 seconds"),
    Effect.orElseSucceed(() => false)
  )

/** Finds the newest running gateway of this machine that uses the data directory. */
export const findRunning = Effect.fn("RunningGateway.find")(function* (dataDir: string) {
  const alive = (yield* readAll(dataDir)).map(({ gateway }) => gateway).filter(({ pid }) => isProcessAlive(pid))
  return yield* Effect.findFirst(alive.toSorted(newestFirst), (gateway) => answers(gateway))
})
