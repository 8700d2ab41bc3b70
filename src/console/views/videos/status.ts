import type { Status, Tone } from "../../parts/Status.ts"
import type { VideoRecord } from "./VideoRecord.ts"

const tones: Readonly<Record<VideoRecord["status"], Tone>> = {
  queued: "soft",
  in_progress: "soft",
  completed: "good",
  failed: "bad"
}

export const isOver = ({ status }: VideoRecord): boolean => status === "completed" || status === "failed"

const isLate = (video: VideoRecord): boolean => !isOver(video) && video.deadline < Date.now() / 1000

export const statusOf = (video: VideoRecord): Status =>
  isLate(video)
    ? { text: "past its deadline", tone: "bad" }
    : { text: video.status.replace("_", " "), tone: tones[video.status] }
