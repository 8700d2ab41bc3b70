import { indent, pythonLiteral, scriptLiteral, shellQuote } from "../../domain/SourceText.ts"

export type Surface = "chat" | "image" | "video"

export interface ApiRequest {
  readonly surface: Surface
  readonly body: Readonly<Record<string, unknown>>
}

/** How a program reaches the gateway. */
export interface Connection {
  /** Ends in `/v1`. */
  readonly baseUrl: string
  /** The default is the environment variable `GATEWAY_KEY`, as in the guides. */
  readonly apiKey?: string | undefined
}

/** The paths of the endpoints below the base URL. */
export const paths: Readonly<Record<Surface, string>> = {
  chat: "/chat/completions",
  image: "/images/generations",
  video: "/videos"
}

/** Returns a small request that every model of the surface accepts, except videos that need a reference image. */
export const exampleRequest = (model: string, surface: Surface): ApiRequest => ({
  surface,
  body: {
    model,
    ...(surface === "chat"
      ? { messages: [{ role: "user", content: "Say hello in one sentence." }] }
      : { prompt: "A lighthouse in fog" })
  }
})

/** Fields that OpenAI's Python client accepts only in `extra_body`. */
const ownFields = new Set(["aspect_ratio", "image", "resolution", "usage", "web_search"])

const isUnfinished = ["queued", "in_progress"]
const pollSeconds = 5

const curl = ({ body, surface }: ApiRequest, { apiKey, baseUrl }: Connection): string => {
  const authorization =
    apiKey === undefined
      ? '-H "Authorization: Bearer $GATEWAY_KEY"'
      : `-H ${shellQuote(`Authorization: Bearer ${apiKey}`)}`
  const create = (flags: string) =>
    [
      `curl${flags} ${shellQuote(`${baseUrl}${paths[surface]}`)}`,
      authorization,
      "-H 'Content-Type: application/json'",
      `-d ${shellQuote(JSON.stringify(body, null, 2))}`
    ].join(" \\\n  ")
  if (surface !== "video") return create(body["stream"] === true ? " -N" : "")
  const video = `"${baseUrl}/videos/$id`
  return `video=$(${create(" -s")})
echo "$video"
id=$(echo "$video" | grep -o 'vid_[[:alnum:]_-]*' | head -n 1)
while curl -s ${video}" ${authorization} | grep -Eq '"status":"(${isUnfinished.join("|")})"'; do sleep ${pollSeconds}; done
curl -L -o video.mp4 ${video}/content" ${authorization}`
}

const pythonArguments = (body: ApiRequest["body"]): string => {
  const entries = Object.entries(body)
  const own = entries.filter(([name]) => ownFields.has(name))
  return [
    ...entries.filter(([name]) => !ownFields.has(name)),
    ...(own.length === 0 ? [] : [["extra_body", Object.fromEntries(own)] as const])
  ]
    .map(([name, value]) => `    ${name}=${indent(pythonLiteral(value), "    ")},\n`)
    .join("")
}

const pythonVideo = (body: ApiRequest["body"], baseUrl: string, key: string) => `import time

import requests

base_url = ${JSON.stringify(baseUrl)}
headers = {"Authorization": "Bearer " + ${key}}
response = requests.post(base_url + "/videos", headers=headers, json=${pythonLiteral(body)})
response.raise_for_status()
video = response.json()
while video["status"] in (${isUnfinished.map((status) => JSON.stringify(status)).join(", ")}):
    time.sleep(${pollSeconds})
    video = requests.get(base_url + "/videos/" + video["id"], headers=headers).json()
if video["status"] == "failed":
    raise RuntimeError(video["error"]["message"])
with open("video.mp4", "wb") as file:
    file.write(requests.get(video["url"]).content)`

const python = ({ body, surface }: ApiRequest, { apiKey, baseUrl }: Connection): string => {
  const key = apiKey === undefined ? 'os.environ["GATEWAY_KEY"]' : JSON.stringify(apiKey)
  const environment = apiKey === undefined ? "import os\n" : ""
  if (surface === "video") return environment + pythonVideo(body, baseUrl, key)
  const head = `${environment}${environment && "\n"}from openai import OpenAI

client = OpenAI(base_url=${JSON.stringify(baseUrl)}, api_key=${key})`
  if (surface === "image") {
    return `${head}
image = client.images.generate(
${pythonArguments(body)})
print(image.data[0].url or image.data[0].b64_json)`
  }
  if (body["stream"] !== true) {
    return `${head}
completion = client.chat.completions.create(
${pythonArguments(body)})
print(completion.choices[0].message.content)`
  }
  return `${head}
stream = client.chat.completions.create(
${pythonArguments(body)})
for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)`
}

const scriptVideo = (
  body: ApiRequest["body"],
  baseUrl: string,
  key: string
) => `import { writeFile } from "node:fs/promises"

const baseUrl = ${JSON.stringify(baseUrl)}
const headers = { Authorization: "Bearer " + ${key}, "Content-Type": "application/json" }
const response = await fetch(baseUrl + "/videos", {
  method: "POST",
  headers,
  body: JSON.stringify(${indent(scriptLiteral(body), "  ")})
})
if (!response.ok) throw new Error(await response.text())
let video = await response.json()
while (${isUnfinished.map((status) => `video.status === ${JSON.stringify(status)}`).join(" || ")}) {
  await new Promise((resolve) => setTimeout(resolve, ${pollSeconds}000))
  video = await (await fetch(baseUrl + "/videos/" + video.id, { headers })).json()
}
if (video.status === "failed") throw new Error(video.error.message)
const mp4 = await fetch(video.url)
await writeFile("video.mp4", Buffer.from(await mp4.arrayBuffer()))`

const javaScript = ({ body, surface }: ApiRequest, { apiKey, baseUrl }: Connection): string => {
  const key = apiKey === undefined ? "process.env.GATEWAY_KEY" : JSON.stringify(apiKey)
  if (surface === "video") return scriptVideo(body, baseUrl, key)
  const head = `import OpenAI from "openai"

const client = new OpenAI({ baseURL: ${JSON.stringify(baseUrl)}, apiKey: ${key} })`
  const literal = scriptLiteral(body)
  if (surface === "image") {
    return `${head}
const image = await client.images.generate(${literal})
console.log(image.data[0].url ?? image.data[0].b64_json)`
  }
  if (body["stream"] !== true) {
    return `${head}
const completion = await client.chat.completions.create(${literal})
console.log(completion.choices[0].message.content)`
  }
  return `${head}
const stream = await client.chat.completions.create(${literal})
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? "")`
}

/** Programs that send a request and show its result. Chat and images use OpenAI's clients in Python and JavaScript. */
export const snippets = { curl, Python: python, JavaScript: javaScript } as const
export type Language = keyof typeof snippets
export const languages: ReadonlyArray<Language> = ["curl", "Python", "JavaScript"]
