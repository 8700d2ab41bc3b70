import { createRequire } from "node:module"
import { Worker } from "node:worker_threads"
import { Effect, Option } from "effect"
import { pictureOf } from "../../services/media/Pictures.ts"
import { ProviderFailure } from "../../services/routing/Provider.ts"
import type { Area } from "./Lettering.ts"

/** Photon takes up to 20 bytes per pixel, measured on each format: a picture of this size fits into 1 GiB. */
const maxPixels = 50_000_000
const timeout = "10 seconds"

export interface Thumbnail extends Area {
  /** Red, green, blue and opacity of each pixel; or a JPEG. */
  readonly bytes: Uint8Array
}

interface Task extends Thumbnail {
  readonly orientation: number
  readonly format: "pixels" | "jpeg"
}

/** Runs in a thread that has this text of it and nothing else of this module. */
const decode = (photon: typeof import("@silvia-odwyer/photon-node"), task: Task): Uint8Array => {
  const { bytes, format, height, orientation, width } = task
  const isTurned = orientation >= 5
  const isMirrored = [2, 3, 7, 8].includes(orientation)
  const isFlipped = [3, 4, 6, 7].includes(orientation)
  const [columns, rows] = isTurned ? [height, width] : [width, height]
  const whole = photon.PhotonImage.new_from_byteslice(bytes)
  const small = photon.resize(whole, columns, rows, photon.SamplingFilter.Triangle).get_raw_pixels()
  const pixels = new Uint32Array(small.buffer, small.byteOffset, columns * rows)
  const upright = new Uint32Array(columns * rows)
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const [right, down] = isTurned ? [y, x] : [x, y]
      const [column, row] = [isMirrored ? columns - 1 - right : right, isFlipped ? rows - 1 - down : down]
      upright[y * width + x] = pixels[row * columns + column] ?? 0
    }
  }
  const shown = new Uint8Array(upright.buffer)
  return format === "pixels" ? shown : new photon.PhotonImage(shown, width, height).get_bytes_jpeg(80)
}

/**
 * Returns the WebAssembly code with a maximum of 1 GiB for its memory, which Photon's leaves open and a thread's
 * `resourceLimits` do not cover. Runs in the thread too.
 */
const limitMemory = (code: Buffer): Buffer => {
  const memorySection = 5
  const pagesOfOneGiB = [0x80, 0x80, 0x01]
  let at = 8
  while (at < code.length) {
    let start = at + 1
    let size = 0
    for (let shift = 0; ; shift += 7) {
      const byte = code.readUInt8(start++)
      size |= (byte & 0x7f) << shift
      if (byte < 0x80) break
    }
    if (code[at] === memorySection && code[start] === 1 && code[start + 1] === 0) {
      const memory = [1, 1, ...code.subarray(start + 2, start + size), ...pagesOfOneGiB]
      const section = Buffer.from([memorySection, memory.length, ...memory])
      return Buffer.concat([code.subarray(0, at), section, code.subarray(start + size)])
    }
    at = start + size
  }
  throw new Error("the decoder declares no memory without a maximum")
}

const program = [
  `const { parentPort, workerData } = require("node:worker_threads")`,
  `const { Module } = WebAssembly`,
  `const limitMemory = ${limitMemory.toString()}`,
  `WebAssembly.Module = function (code) { return new Module(limitMemory(code)) }`,
  `parentPort.postMessage((${decode.toString()})(require(workerData.library), workerData))`
].join("\n")

const undecodable = (detail: string): ProviderFailure =>
  new ProviderFailure({ class: "request", status: 400, param: "image", detail: `sandbox: a reference ${detail}` })

const findLibrary = Effect.try({
  try: () => createRequire(import.meta.url).resolve("@silvia-odwyer/photon-node"),
  catch: (cause) =>
    new ProviderFailure({
      class: "retry",
      status: 500,
      detail: `sandbox: references cannot be decoded: ${String(cause)}`
    })
})

const runWorker = (workerData: Task & { readonly library: string }): Effect.Effect<Uint8Array, ProviderFailure> =>
  Effect.async((resume) => {
    const worker = new Worker(program, { eval: true, execArgv: [], workerData })
    let outcome: Effect.Effect<Uint8Array, ProviderFailure> = undecodable("ended its decoder")
    worker.once("message", (bytes: unknown) => {
      outcome = bytes instanceof Uint8Array ? Effect.succeed(bytes) : Effect.dieMessage("the decoder sent no bytes")
    })
    worker.once("error", ({ message }) => {
      outcome = undecodable(`cannot be decoded: ${message}`)
    })
    // The thread frees its memory when it ends, and the next decoder may start only then.
    worker.once("exit", () => resume(outcome))
    return Effect.promise(() => worker.terminate())
  })

/** 1 to 8, of a JPEG's EXIF data: how a camera was held. */
const orientationOf = (bytes: Uint8Array): number => {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, 65_536))
  const tiff = file.indexOf("Exif\0\0", 0, "latin1") + 6
  if (tiff < 6 || tiff + 8 > file.length) return 1
  const isLittle = file[tiff] === 0x49
  const read16 = (at: number): number => {
    if (at + 2 > file.length) return 0
    return isLittle ? file.readUInt16LE(at) : file.readUInt16BE(at)
  }
  const tags = tiff + (isLittle ? file.readUInt32LE(tiff + 4) : file.readUInt32BE(tiff + 4))
  for (let tag = tags + 2; tag < tags + 2 + 12 * read16(tags); tag += 12) {
    if (read16(tag) === 0x112) return Math.min(8, Math.max(1, read16(tag + 8)))
  }
  return 1
}

const fitInside = ({ height, width }: Area, room: Area): Area => {
  const scale = Math.min(room.width / width, room.height / height)
  return { width: Math.max(1, Math.round(width * scale)), height: Math.max(1, Math.round(height * scale)) }
}

/** One at a time in a process: a large picture takes up to 1 GiB while it is decoded. */
const turns = Effect.unsafeMakeSemaphore(1)

/**
 * A reference upright and as large as the room allows. Photon decodes it in WebAssembly, in a thread of its own: a file
 * made to crash, fill or occupy a decoder ends that thread and nothing else. Fails as the request's fault if the file
 * cannot be decoded.
 */
export const decodeReference = Effect.fnUntraced(function* (bytes: Uint8Array, room: Area, format: Task["format"]) {
  const library = yield* findLibrary
  const picture = yield* Effect.flatMap(
    pictureOf(bytes),
    Option.match({ onNone: () => Effect.fail(undecodable("is no whole picture")), onSome: Effect.succeed })
  )
  if (picture.width * picture.height > maxPixels) return yield* undecodable(`has more than ${maxPixels} pixels`)
  const orientation = picture.type === "image/jpeg" ? orientationOf(bytes) : 1
  const { height, width } = picture
  const size = fitInside(orientation >= 5 ? { width: height, height: width } : { width, height }, room)
  const task = { ...size, bytes, orientation, format, library }
  const decoded = yield* turns.withPermits(1)(
    Effect.timeoutFail(runWorker(task), { duration: timeout, onTimeout: () => undecodable("takes too long to decode") })
  )
  return { ...size, bytes: decoded } satisfies Thumbnail
})
