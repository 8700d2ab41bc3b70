import { access, constants, type FileHandle, open, readdir, readFile, rename, rm, stat, unlink } from "node:fs/promises"
import path from "node:path"
import { Clock, type Context, Data, Duration, Effect, Layer, Option, Predicate, Stream } from "effect"
import { formatMediaName, parseMediaName } from "../domain/Media.ts"
import { MediaStore, MediaStoreFailed, maxReadBytes, type NewMedia } from "../services/media/MediaStore.ts"
import { Ids } from "../services/runtime/Ids.ts"
import { errorCode, makeFolders } from "../services/runtime/System.ts"

class FileMissing extends Data.TaggedError("FileMissing") {}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error))

/** Calls that have exceeded their time limit. Their number is limited, because each occupies one of Node's few threads. */
let hangingCalls = 0
const maxHangingCalls = 2
const timeoutMillis = 30_000

const isHandle = (value: unknown): value is FileHandle => Predicate.hasProperty(value, "close")

/** Rejects after the time limit, although the call itself continues, because file system calls cannot be cancelled. */
export const rejectAfter = <A>(millis: number, work: () => Promise<A>): Promise<A> => {
  if (hangingCalls >= maxHangingCalls) return Promise.reject(new Error("the disk does not respond"))
  return new Promise((resolve, reject) => {
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      hangingCalls += 1
      reject(new Error(`the disk did not respond within ${millis} ms`))
    }, millis)
    const end = () => {
      clearTimeout(timer)
      if (isLate) hangingCalls -= 1
    }
    const settle = (value: A) => {
      // Closes a late file handle, because the caller has given up and will not close it.
      if (isLate && isHandle(value)) void value.close().catch(() => {})
      resolve(value)
    }
    work().finally(end).then(settle, reject)
  })
}

export const runIo = <A>(work: () => Promise<A>): Effect.Effect<A, MediaStoreFailed> =>
  Effect.tryPromise({
    try: () => rejectAfter(timeoutMillis, work),
    catch: (error) => new MediaStoreFailed({ detail: messageOf(error) })
  })

export const runIoOnFile = <A>(work: () => Promise<A>): Effect.Effect<A, MediaStoreFailed | FileMissing> =>
  Effect.tryPromise({
    try: () => rejectAfter(timeoutMillis, work),
    catch: (error) =>
      errorCode(error) === "ENOENT" ? new FileMissing() : new MediaStoreFailed({ detail: messageOf(error) })
  })

/** Error codes of file systems that cannot sync a directory. */
const syncUnsupported: ReadonlySet<unknown> = new Set(["EINVAL", "ENOTSUP", "EISDIR", "EPERM"])

/** Ensures that files created in or removed from the directory stay so after a power loss. */
export const syncDirectory = (directory: string) =>
  runIo(async () => {
    const handle = await open(directory, "r")
    try {
      await handle.sync()
    } catch (error) {
      if (!syncUnsupported.has(errorCode(error))) throw error
    } finally {
      await handle.close()
    }
  })

type Service = Context.Tag.Service<MediaStore>

/** The operations that differ between media stores. `makeStore` calls them only with valid media names. */
interface Files extends Pick<Service, "put" | "sizeOf" | "read" | "remove"> {
  /** The base URL of links, without a trailing slash. */
  readonly publicUrl: string
  /** Writes a test file. Fails if that is impossible. */
  readonly probe: Effect.Effect<unknown, MediaStoreFailed>
  /** For this long after a successful write, no check is needed. */
  readonly checkValidFor: Duration.DurationInput
}

const isPublic = (name: string) => parseMediaName(name)?.visibility === "public"

/** Converts between names and links. The query and fragment of a link are ignored. */
export const links = (publicUrl: string) => ({
  link: (name: string): string => {
    if (!isPublic(name)) throw new Error("Only public media have a link.")
    return `${publicUrl}/${name}`
  },
  nameOf: (link: string): Option.Option<string> => {
    if (!link.startsWith(`${publicUrl}/`)) return Option.none()
    const name = link.slice(publicUrl.length + 1).replace(/[?#].*$/s, "")
    return isPublic(name) ? Option.some(name) : Option.none()
  }
})

const probeTimeout = "10 seconds"

export const makeStore = ({ probe: write, publicUrl, put, read, remove, sizeOf, checkValidFor }: Files) =>
  Effect.map(Effect.makeSemaphore(1), (mutex): Service => {
    const validNanos = BigInt(Math.round(Duration.toMillis(checkValidFor))) * 1_000_000n
    let last: { readonly at: bigint; readonly failure: MediaStoreFailed | undefined } | undefined
    const record = (failure: MediaStoreFailed | undefined) =>
      Effect.map(Clock.currentTimeNanos, (at) => {
        last = { at, failure }
      })

    const probe = write.pipe(
      Effect.disconnect,
      Effect.timeoutFail({
        duration: probeTimeout,
        onTimeout: () => new MediaStoreFailed({ detail: `a test file was not written within ${probeTimeout}` })
      }),
      Effect.matchEffect({ onFailure: record, onSuccess: () => record(undefined) })
    )

    /** A caller also accepts a result that is newer than its call, so waiting callers share one check. */
    const isFresh = (calledAt: bigint, now: bigint) =>
      last !== undefined && (last.at >= calledAt || (last.failure === undefined && now - last.at < validNanos))

    const check = Effect.flatMap(Clock.currentTimeNanos, (calledAt) =>
      Effect.gen(function* () {
        if (!isFresh(calledAt, yield* Clock.currentTimeNanos)) yield* probe
        if (last?.failure !== undefined) return yield* last.failure
      }).pipe(mutex.withPermits(1))
    )

    const onFile =
      <A>(span: string, absent: A, use: (name: string) => Effect.Effect<A, MediaStoreFailed>) =>
      (name: string) =>
        Effect.withSpan(parseMediaName(name) === undefined ? Effect.succeed(absent) : use(name), span)
    const hasFile = (name: string) => Effect.map(sizeOf(name), Option.isSome)

    return {
      ...links(publicUrl),
      put: (media) =>
        put(media).pipe(
          Effect.tapError((error) => (error instanceof MediaStoreFailed ? record(error) : Effect.void)),
          Effect.tap(() => record(undefined)),
          Effect.withSpan("MediaStore.put")
        ),
      check: Effect.withSpan(check, "MediaStore.check"),
      has: onFile("MediaStore.has", false, hasFile),
      sizeOf: onFile("MediaStore.sizeOf", Option.none(), sizeOf),
      read: onFile("MediaStore.read", Option.none(), read),
      remove: onFile("MediaStore.remove", false, remove)
    }
  })

/** Calls `use` with parts of `size` bytes; the last one may be shorter. They share one buffer, so `use` must not keep them. */
export const forEachPart = <E, E2, R, R2>(
  body: Stream.Stream<Uint8Array, E, R>,
  size: number,
  use: (part: Uint8Array, isLast: boolean) => Effect.Effect<void, E2, R2>
): Effect.Effect<void, E | E2, R | R2> =>
  Effect.suspend(() => {
    const memory = Buffer.allocUnsafeSlow(size)
    let filled = 0
    const take = (chunk: Uint8Array, from: number): Effect.Effect<void, E2, R2> => {
      if (from === chunk.length) return Effect.void
      if (filled === size) {
        return Effect.flatMap(use(memory, false), () => {
          filled = 0
          return take(chunk, from)
        })
      }
      const count = Math.min(size - filled, chunk.length - from)
      memory.set(chunk.subarray(from, from + count), filled)
      filled += count
      return take(chunk, from + count)
    }
    return Stream.runForEach(body, (chunk) => Effect.suspend(() => take(chunk, 0))).pipe(
      Effect.zipRight(Effect.suspend(() => use(memory.subarray(0, filled), true)))
    )
  })

export interface DiskOptions {
  /** An absolute path. The directory is created with the first file. */
  readonly directory: string
  /** The base URL of links, without a trailing slash. */
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

    /** Opens a temporary file. It is removed with the scope, unless it was moved before. */
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
        Effect.logWarning(`Incomplete media files could not be removed: ${detail}`)
      )
    )

    /** Removes the file's name before writing to it, so a crash leaves no file. */
    const writeProbe = Effect.gen(function* () {
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
          if (size > maxReadBytes)
            return yield* new MediaStoreFailed({ detail: `${name} is too large to read into memory` })
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
      probe: writeProbe,
      checkValidFor: "1 second"
    })
  })

/** A web server may serve `<directory>/public` directly, but must not serve `<directory>/private`. */
export const layer = (options: DiskOptions) => Layer.effect(MediaStore, make(options))
