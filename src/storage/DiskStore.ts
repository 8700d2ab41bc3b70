import { access, constants, open, readdir, readFile, rename, rm, stat, unlink } from "node:fs/promises"
import path from "node:path"
import { Clock, Effect, Layer, Option, Predicate } from "effect"
import { formatMediaName } from "../domain/Media.ts"
import { largestRead, MediaStore, MediaStoreFailed, type NewMedia } from "../services/media/MediaStore.ts"
import { Ids } from "../services/runtime/Ids.ts"
import { makeFolders } from "../services/runtime/System.ts"
import { runIo, runIoOnFile, syncDirectory } from "./DiskIo.ts"
import { forEachPart, makeStore } from "./FileStore.ts"

export interface DiskOptions {
  /** Absolute; created with the first file. */
  readonly directory: string
  /** The base of links, without a trailing slash. */
  readonly publicUrl: string
}

const writeBytes = 1024 * 1024
const staleMillis = 24 * 60 * 60 * 1000

const modes = {
  public: { directory: 0o755, file: 0o644 },
  private: { directory: 0o700, file: 0o600 }
}

const make = ({ directory, publicUrl }: DiskOptions) =>
  Effect.gen(function* () {
    const ids = yield* Ids
    const incoming = path.join(directory, "incoming")

    const makeFolder = (name: string, mode: number) =>
      Effect.flatMap(
        runIo(async () => {
          const outer = await makeFolders(directory, modes.private.directory)
          const inner = await makeFolders(name, mode)
          return outer ?? inner
        }),
        (made) =>
          made === undefined ? Effect.void : Effect.zipRight(syncDirectory(made), syncDirectory(path.dirname(made)))
      )

    /** Removed with the scope unless it was moved. */
    const openTemporary = Effect.fnUntraced(function* (mode: number) {
      yield* makeFolder(incoming, modes.private.directory)
      const file = path.join(incoming, `${ids.unguessable()}.part`)
      const handle = yield* Effect.acquireRelease(
        runIo(() => open(file, "wx", mode)),
        (opened) =>
          Effect.zipRight(
            Effect.ignore(runIo(() => opened.close())),
            Effect.ignore(runIo(() => rm(file, { force: true })))
          )
      )
      return { file, handle }
    })

    const write = Effect.fnUntraced(function* <E>({ body, type, visibility }: NewMedia<E>) {
      const mode = modes[visibility]
      const { file, handle } = yield* openTemporary(mode.file)
      const append = (bytes: Uint8Array) => Effect.uninterruptible(runIo(() => handle.writeFile(bytes)))
      yield* Predicate.isUint8Array(body) ? append(body) : forEachPart(body, writeBytes, append)

      const name = formatMediaName({ visibility, id: ids.unguessable(), type })
      const target = path.join(directory, name)
      const home = path.dirname(target)
      yield* runIo(() => handle.sync()).pipe(
        Effect.zipRight(runIo(() => handle.close())),
        Effect.zipRight(makeFolder(home, mode.directory)),
        Effect.zipRight(runIo(() => rename(file, target))),
        Effect.zipRight(syncDirectory(home)),
        Effect.onError(() => Effect.ignore(runIo(() => rm(target, { force: true })))),
        Effect.uninterruptible
      )
      return name
    }, Effect.scoped)

    const removeIfStale = (name: string, before: number) => {
      const file = path.join(incoming, name)
      return runIoOnFile(() => stat(file)).pipe(
        Effect.flatMap(({ mtimeMs }) =>
          mtimeMs < before ? runIo(() => rm(file, { force: true, recursive: true })) : Effect.void
        ),
        Effect.catchTag("FileMissing", () => Effect.void)
      )
    }

    yield* Effect.gen(function* () {
      const before = (yield* Clock.currentTimeMillis) - staleMillis
      const names = yield* runIoOnFile(() => readdir(incoming))
      yield* Effect.forEach(names, (name) => removeIfStale(name, before), { discard: true })
    }).pipe(
      Effect.catchTag("FileMissing", () => Effect.void),
      Effect.catchTag("MediaStoreFailed", ({ detail }) =>
        Effect.logWarning(`Media that were never finished could not be removed: ${detail}`)
      )
    )

    /** The probe file is unlinked before it is written. */
    const tryWriting = Effect.gen(function* () {
      yield* makeFolder(path.join(directory, "public"), modes.public.directory)
      yield* runIo(() => access(path.join(directory, "public"), constants.W_OK))
      const file = path.join(directory, `${ids.unguessable()}.check`)
      const handle = yield* Effect.acquireRelease(
        runIo(() => open(file, "wx", modes.private.file)),
        (opened) => Effect.ignore(runIo(() => opened.close()))
      )
      yield* runIo(() => rm(file))
      yield* runIo(() => handle.writeFile(Uint8Array.of(0)))
      yield* runIo(() => handle.sync())
    }).pipe(Effect.scoped)

    return yield* makeStore({
      publicUrl,
      put: write,
      sizeOf: (name) =>
        runIoOnFile(() => stat(path.join(directory, name))).pipe(
          Effect.map(({ size }) => Option.some(size)),
          Effect.catchTag("FileMissing", () => Effect.succeedNone)
        ),
      read: Effect.fnUntraced(
        function* (name: string) {
          const file = path.join(directory, name)
          const { size } = yield* runIoOnFile(() => stat(file))
          if (size > largestRead)
            return yield* new MediaStoreFailed({ detail: `${name} is too large to be read whole` })
          return Option.some(yield* runIoOnFile(() => readFile(file)))
        },
        Effect.catchTag("FileMissing", () => Effect.succeedNone)
      ),
      remove: (name) => {
        const file = path.join(directory, name)
        return runIoOnFile(() => unlink(file)).pipe(
          Effect.zipRight(syncDirectory(path.dirname(file))),
          Effect.as(true),
          Effect.catchTag("FileMissing", () => Effect.succeed(false)),
          Effect.uninterruptible
        )
      },
      probe: tryWriting,
      trustedFor: "1 second"
    })
  })

/** `<directory>/public` may be served, `<directory>/private` never. */
export const layer = (options: DiskOptions) => Layer.effect(MediaStore, make(options))
