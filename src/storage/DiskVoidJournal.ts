import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises"
import path from "node:path"
import { Effect, Layer, Schema } from "effect"
import { JournalFailed, PendingVoid, VoidJournal } from "../services/VoidJournal.ts"
import { io, ioOn, syncDirectory } from "./disk/Io.ts"

const Entry = Schema.parseJson(PendingVoid)
const encode = Schema.encodeSync(Entry)
const decode = Schema.decodeUnknown(Entry)
const extension = ".json"

const failed = Effect.mapError(({ detail }: { readonly detail: string }) => new JournalFailed({ message: detail }))

/** One small file per void, complete or absent; processes that share the directory work off each other's. */
export const layer = (options: { readonly directory: string }): Layer.Layer<VoidJournal> =>
  Layer.sync(VoidJournal, () => {
    const { directory } = options
    const fileOf = (hold: string) => path.join(directory, `${hold}${extension}`)

    const write = (file: string, text: string) =>
      io(async () => {
        await mkdir(directory, { recursive: true, mode: 0o700 })
        const handle = await open(`${file}.part`, "w", 0o600)
        try {
          await handle.writeFile(text)
          await handle.sync()
        } finally {
          await handle.close()
        }
        await rename(`${file}.part`, file)
      })

    /** None for a file that another process has worked off, or that is no entry. */
    const read = (name: string) =>
      io(() => readFile(path.join(directory, name), "utf8")).pipe(
        Effect.flatMap(decode),
        Effect.tapErrorTag("ParseError", () => Effect.logError(`${path.join(directory, name)} is not a void`)),
        Effect.option
      )

    const names = Effect.catchTag(
      ioOn(() => readdir(directory)),
      "NotThere",
      () => Effect.succeed([])
    )

    return VoidJournal.of({
      add: (entry) =>
        failed(Effect.zipRight(write(fileOf(entry.hold), encode(entry)), syncDirectory(directory))).pipe(
          Effect.uninterruptible
        ),
      remove: (hold) => failed(io(() => rm(fileOf(hold), { force: true }))),
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
  })
