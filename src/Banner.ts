import { Option, Redacted } from "effect"
import type { Model } from "./domain/Model.ts"
import { demoOrganization, type FirstSecrets, firstOperator } from "./FirstStart.ts"
import type { Settings } from "./Settings.ts"
import { linkHours } from "./services/admin/Operators.ts"

interface Started {
  readonly settings: Settings
  readonly url: string
  readonly models: ReadonlyArray<Model>
  readonly sandbox: boolean
  readonly first: Option.Option<FirstSecrets>
}

const curl = (url: string, key: string, path: string, body: unknown, flags = "") =>
  `  curl ${flags}${url}/v1${path} -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' -d '${JSON.stringify(body)}'`

const firstRequests = ({ models, url }: Started, key: string): ReadonlyArray<string> => {
  const first = (is: (model: Model) => boolean) => models.find(is)?.id
  const chat = first(({ surface }) => surface === "chat")
  const image = first(({ surface }) => surface === "image")
  const video = first((model) => model.surface === "video" && model.referenceImage !== "required")
  const ask = (model: string, content: string) => ({ model, messages: [{ role: "user", content }] })
  const lines = (title: string, ...commands: ReadonlyArray<string>) => [`${title}:`, ...commands, ""]
  const get = (path: string) => `  curl ${url}/v1${path} -H 'Authorization: Bearer ${key}'`
  return [
    ...(chat === undefined
      ? []
      : [
          ...lines("A chat", curl(url, key, "/chat/completions", ask(chat, "Say hello in one sentence."))),
          ...lines(
            "A stream",
            curl(url, key, "/chat/completions", { ...ask(chat, "Count from one to five."), stream: true }, "-N ")
          )
        ]),
    ...(image === undefined
      ? []
      : lines("An image", curl(url, key, "/images/generations", { model: image, prompt: "A lighthouse at dusk" }))),
    ...(video === undefined
      ? []
      : lines(
          "A video, and a few seconds later what became of it",
          curl(url, key, "/videos", { model: video, prompt: "Waves rolling onto a beach" }),
          get("/videos")
        )),
    ...lines("The models and the balance", get("/models"), get("/credits")).slice(0, -1)
  ]
}

const linkLater = (url: string) =>
  `Links that open the console, ${url}/console, are made with: gateway operators create NAME --role owner (then link NAME).`

export const banner = (started: Started): string => {
  const { first, models, sandbox, settings, url } = started
  return [
    "",
    `The Generation Gateway is listening on ${url}/v1 and serves ${models.length} models.`,
    ...(sandbox
      ? ["The SANDBOX answers in place of providers without a credential: its answers are made up, and charged."]
      : []),
    ...(settings.databaseUrl === undefined ? [`Database: embedded, in ${settings.dataDir}.`] : []),
    "",
    ...Option.match(first, {
      onNone: () => ["Keys are made with: gateway keys create --org ORG (npx gateway in a checkout).", linkLater(url)],
      onSome: ({ key, link }) => [
        `Organization "${demoOrganization}" has 100 USD. Its key, shown only this once:`,
        `  ${Redacted.value(key)}`,
        "",
        ...Option.match(link, {
          onNone: () => [linkLater(url)],
          onSome: (secret) => [
            `The console, for the operator "${firstOperator}"; the link opens it once, within ${linkHours} hours:`,
            `  ${url}/console#link=${Redacted.value(secret)}`
          ]
        }),
        "",
        ...firstRequests(started, Redacted.value(key))
      ]
    }),
    ""
  ].join("\n")
}
