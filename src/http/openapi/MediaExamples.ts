import type { ImageModel, VideoModel } from "../../domain/Model.ts"
import { toUsd } from "../../domain/Money.ts"
import { quotient } from "../../domain/Shape.ts"
import { clipPrice } from "../../domain/Video.ts"
import { created, type Examples, picture } from "./Example.ts"

const json = "application/json"
const form = "multipart/form-data"

const sizesOf = ({ variants }: ImageModel): ReadonlyArray<string> => variants.flatMap(({ shape }) => shape?.size ?? [])

const drawn = (size = "1024x1024") => ({ created, size, data: [{ url: "https://media.example/Zr0v.png" }] })

export const imageExamples = (model: ImageModel): Readonly<Record<string, Examples>> => {
  const size = sizesOf(model).find((one) => quotient(one) > 1)
  const edit = { model: model.id, prompt: "Put a hat on the cat" }
  return {
    createImage: {
      request: {
        [json]: {
          generation: { model: model.id, prompt: "A lighthouse in fog", ...(size === undefined ? {} : { size }) },
          ...(model.edit && { edit: { ...edit, image: picture, response_format: "b64_json" } })
        }
      },
      answer: drawn(size)
    },
    ...(model.edit && {
      createImageEdit: {
        request: { [json]: { edit: { ...edit, image: [picture] } }, [form]: { edit: { ...edit, image: picture } } },
        answer: drawn(sizesOf(model)[0])
      }
    })
  }
}

export const videoExamples = (model: VideoModel): Readonly<Record<string, Examples>> => {
  const { id, referenceImage } = model
  const seconds = model.seconds.default
  const clip = { prompt: "The cat jumps", seconds: String(seconds) }
  const video = {
    id: "vid_9c2d6a4c1f0b4d5e8a7f3b2c1d0e9f8a",
    object: "video",
    model: id,
    progress: 0,
    created_at: created,
    seconds
  }
  const url = "https://media.example/q3Fh.mp4"
  return {
    createVideo: {
      request: {
        [json]: {
          ...(referenceImage !== "required" && {
            text: { model: id, prompt: "A lighthouse in fog, waves below", seconds }
          }),
          ...(referenceImage !== "none" && { frame: { model: id, prompt: clip.prompt, image: picture } })
        },
        [form]:
          referenceImage === "none"
            ? { text: { model: id, ...clip } }
            : { frame: { model: id, ...clip, input_reference: picture } }
      },
      answer: { ...video, status: "queued" }
    },
    getVideo: {
      answer: {
        ...video,
        status: "completed",
        progress: 100,
        completed_at: created + 84,
        charge_usd: toUsd(clipPrice(model.pricing, seconds)),
        url,
        data: [{ url }]
      }
    },
    listVideos: {
      answer: {
        object: "list",
        data: [{ ...video, status: "in_progress", progress: 40 }],
        first_id: video.id,
        last_id: video.id,
        has_more: false
      }
    },
    deleteVideo: { answer: { id: video.id, object: "video.deleted", deleted: true } }
  }
}
