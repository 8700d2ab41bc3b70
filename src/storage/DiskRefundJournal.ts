import { open, readdir, readFile, rename, rm } from "node:fs/promises"
import path from "node:path"
import { Effect, Layer, Schema } from "effect"
import { JournalFailed, PendingRefund, RefundJournal } from "../services/ledger/Refunds.ts"
import { Ids } from "../services/runtime/Ids.ts"
import { makeFolders } from "../services/runtime/System.ts"
import { runIo, runIoOnFile, syncDirectory } from "./DiskStore.ts"

const Entry = Schema.parseJson(PendingRefund)
const encode = Schema.encodeSync(Entry)
const decode = Schema.decodeUnknown(Entry)
const extension = ".json"

const mapFailure = Effect.mapError(({ detail }: { readonly detail: string }) => new JournalFailed({ message: detail }))

interface Options {
  readonly directory: string
  /** The directory that older gateways use, because they cannot execute the refunds in `directory`. */
  readonly legacyDirectory?: string | undefined
}

/** Writes one file per refund, atomically. Processes that share the directory execute each other's refunds. */
export const layer = (options: Options): Layer.Layer<RefundJournal> =>
  Layer.effect(
    RefundJournal,
    Effect.map(Ids, (ids) => make(options, ids))
  )

const make = ({ directory, legacyDirectory }: Options, ids: typeof Ids.Service) => {
  const directories = legacyDirectory === undefined ? [directory] : [directory, legacyDirectory]
  const fileIn = (folder: string, hold: string) => path.join(folder, `${hold}${extension}`)

  const write = (file: string, text: string) => {
    const part = `${file}.${ids.unguessable()}.part`
    return runIo(async () => {
      await makeFolders(directory, 0o700)
      const handle = await open(part, "wx", 0o600)
      try {
        await handle.writeFile(text)
        await handle.sync()
      } finally {
        await handle.close()
      }
      await rename(part, file)
    }).pipe(Effect.onError(() => Effect.ignore(runIo(() => rm(part, { force: true })))))
  }

  /** Returns none if another process has removed the file, or if the file is invalid. */
  const read = (file: string) =>
    runIo(() => readFile(file, "utf8")).pipe(
      Effect.flatMap(decode),
      Effect.tapErrorTag("ParseError", () => Effect.logError(`${file} is not a valid entry of the refund journal`)),
      Effect.option
    )

  const filesIn = (folder: string) =>
    runIoOnFile(() => readdir(folder)).pipe(
      Effect.catchTag("FileMissing", () => Effect.succeed([])),
      Effect.map((names) => names.filter((name) => name.endsWith(extension)).map((name) => path.join(folder, name)))
    )

  return RefundJournal.of({
    add: (entry) =>
      mapFailure(Effect.zipRight(write(fileIn(directory, entry.hold), encode(entry)), syncDirectory(directory))).pipe(
        Effect.uninterruptible
      ),
    remove: (hold) =>
      mapFailure(
        Effect.forEach(directories, (folder) => runIo(() => rm(fileIn(folder, hold), { force: true })), {
          discard: true
        })
      ),
    entries: mapFailure(Effect.forEach(directories, filesIn)).pipe(
      Effect.flatMap((files) => Effect.forEach(files.flat(), read)),
      Effect.map((entries) => entries.flatMap((entry) => (entry._tag === "Some" ? [entry.value] : [])))
    )
  })
}
