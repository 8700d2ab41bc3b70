import { open, readdir, readFile, rename, rm } from "node:fs/promises"
import path from "node:path"
import { Effect, Layer, Schema } from "effect"
import { JournalFailed, PendingRefund, RefundJournal } from "../services/ledger/RefundJournal.ts"
import { makeFolders } from "../services/runtime/Folders.ts"
import { Ids } from "../services/runtime/Ids.ts"
import { runIo, runIoOnFile, syncDirectory } from "./disk/Io.ts"

const Entry = Schema.parseJson(PendingRefund)
const encode = Schema.encodeSync(Entry)
const decode = Schema.decodeUnknown(Entry)
const extension = ".json"

const failed = Effect.mapError(({ detail }: { readonly detail: string }) => new JournalFailed({ message: detail }))

/** One file per refund, complete or absent; processes that share the directory also carry out each other's. */
export const layer = (options: { readonly directory: string }): Layer.Layer<RefundJournal> =>
  Layer.effect(
    RefundJournal,
    Effect.map(Ids, (ids) => make(options.directory, ids))
  )

const make = (directory: string, ids: typeof Ids.Service) => {
  const fileOf = (hold: string) => path.join(directory, `${hold}${extension}`)

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

  /** None where another process has removed it, or it is no entry. */
  const read = (name: string) =>
    runIo(() => readFile(path.join(directory, name), "utf8")).pipe(
      Effect.flatMap(decode),
      Effect.tapErrorTag("ParseError", () =>
        Effect.logError(`${path.join(directory, name)} is no entry of the journal of voids`)
      ),
      Effect.option
    )

  const names = Effect.catchTag(
    runIoOnFile(() => readdir(directory)),
    "FileMissing",
    () => Effect.succeed([])
  )

  return RefundJournal.of({
    add: (entry) =>
      failed(Effect.zipRight(write(fileOf(entry.hold), encode(entry)), syncDirectory(directory))).pipe(
        Effect.uninterruptible
      ),
    remove: (hold) => failed(runIo(() => rm(fileOf(hold), { force: true }))),
    entries: failed(names).pipe(
      Effect.flatMap((found) =>
        Effect.forEach(
          found.filter((name) => name.endsWith(extension)),
          read
        )
      ),
      Effect.map((entries) => entries.flatMap((entry) => (entry._tag === "Some" ? [entry.value] : [])))
    )
  })
}
