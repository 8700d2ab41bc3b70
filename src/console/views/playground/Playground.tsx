import { useEffect, useId, useState } from "preact/hooks"
import { callGateway, findFirstModel, type ListedModel, playgroundKey, useModels } from "../../api/GatewayClient.ts"
import { type PageAnswer, useResource } from "../../api/useResource.ts"
import { replaceQuery, useRoute } from "../../BrowserState.ts"
import { type ApiRequest, paths } from "../../format/Snippets.ts"
import { WriteButton } from "../../parts/Dialog.tsx"
import { Empty, ErrorBox, Loading } from "../../parts/Feedback.tsx"
import { changesIn, InputFields, inputs, TextField, textOf } from "../../parts/Fields.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import { RequestSnippets } from "../../parts/Snippets.tsx"
import { shorten, Usd } from "../../parts/Values.tsx"
import { useHasRole, useMembership } from "../../SignedIn.ts"
import { useStore } from "../../Store.ts"
import type { IssuedKey, Organization } from "../organizations/records.ts"
import {
  clearSentRequests,
  type Draft,
  paramsOf,
  requestOf,
  runningRequest,
  SentRequestList,
  send,
  sentRequests
} from "./SentRequests.tsx"

const keyInputs = inputs.key.filter(({ name }) => ["name", "cap_usd", "cap_period", "expires_at"].includes(name))

/** An organization by name or id. The first ones are suggested. */
const OrganizationField = () => {
  const list = useId()
  const { data } = useResource<PageAnswer<Organization>>("/organizations", { query: { limit: 200 } })
  return (
    <>
      <TextField name="organization" label="Organization" hint="A name or an ID." list={list} required />
      <datalist id={list}>
        {data?.data.map(({ id, name }) => (
          <option key={id} value={name} />
        ))}
      </datalist>
    </>
  )
}

const CreateKey = () => {
  const own = useMembership()
  return (
    <WriteButton<IssuedKey>
      label="Create key"
      title="Create a key for the playground"
      action="Create"
      path="/keys"
      body={(form) => ({ organization: own?.id ?? textOf(form, "organization"), ...changesIn(keyInputs, form) })}
      onDone={({ key }) => playgroundKey.set(key ?? undefined)}
    >
      {own === undefined && <OrganizationField />}
      <InputFields inputs={keyInputs} record={{ name: "playground" }} />
    </WriteButton>
  )
}

/** Takes a new key, or an existing one that the user pastes, because the gateway stores no secrets. */
const KeyChoice = () => {
  const [pasted, setPasted] = useState("")
  const canCreate = useHasRole("write")
  const apply = (event: Event) => {
    event.preventDefault()
    playgroundKey.set(pasted.trim())
  }
  return (
    <form class="panel key-choice" onSubmit={apply}>
      <p>
        Requests from this page are charged like those of your programs.
        {canCreate ? " Create a key, or paste one." : " Paste an API key."} This page forgets the key when you reload or
        sign out.
      </p>
      <label class="field">
        <span>API key</span>
        <input
          type="password"
          autocomplete="off"
          required
          value={pasted}
          onInput={({ currentTarget }) => setPasted(currentTarget.value)}
        />
      </label>
      <div class="actions">
        <button class="primary">Use key</button>
        <CreateKey />
      </div>
    </form>
  )
}

interface Quote {
  readonly max_charge_usd: number
  readonly affordable: boolean
}

const quoteMillis = 600
/** A quote sends the whole request, so a request with an image file gets none. */
const maxQuoteLength = 100_000

/** Returns the quote of the request that the user is writing, a moment after the last change. */
const useQuote = (apiKey: string, { body, surface }: ApiRequest, isReady: boolean): Quote | undefined => {
  const text = JSON.stringify({ endpoint: `/v1${paths[surface]}`, body })
  const [quote, setQuote] = useState<Quote & { readonly text: string }>()
  useEffect(() => {
    if (!isReady || text.length > maxQuoteLength) return
    const controller = new AbortController()
    const timer = setTimeout(() => {
      callGateway("/quote", apiKey, { body: JSON.parse(text), signal: controller.signal })
        .then(async (response) => setQuote({ ...(await response.json()), text }))
        // The request itself shows the error.
        .catch(() => setQuote(undefined))
    }, quoteMillis)
    return () => {
      clearTimeout(timer)
      controller.abort()
    }
  }, [apiKey, text, isReady])
  return isReady && quote?.text === text ? quote : undefined
}

const QuoteText = ({ affordable, max_charge_usd }: Quote) => (
  <span class={affordable ? "soft" : "problem"}>
    At most <Usd amount={max_charge_usd} />
    {!affordable && ". The balance or a spending cap does not cover it."}
  </span>
)

const surfaces = [
  ["chat", "Chat"],
  ["image", "Images"],
  ["video", "Videos"]
] as const

const ModelField = ({ model, models }: { readonly model: string; readonly models: ReadonlyArray<ListedModel> }) => (
  <label class="field">
    <span>Model</span>
    <select value={model} onChange={({ currentTarget }) => replaceQuery({ model: currentTarget.value })}>
      {surfaces.map(([surface, label]) => (
        <optgroup key={surface} label={label}>
          {models
            .filter((candidate) => candidate.surface === surface)
            .map(({ id }) => (
              <option key={id} value={id}>
                {id}
              </option>
            ))}
        </optgroup>
      ))}
    </select>
  </label>
)

const maxFileBytes = 20 * 1024 * 1024

/** The address of an image, or a file that is sent as base64. */
const ImageField = ({ isRequired, onChange, value }: FieldProps) => {
  const [isTooLarge, setTooLarge] = useState(false)
  const read = (file: File | undefined) => {
    setTooLarge(file !== undefined && file.size > maxFileBytes)
    if (file === undefined || file.size > maxFileBytes) return
    const reader = new FileReader()
    reader.addEventListener("load", () => typeof reader.result === "string" && onChange(reader.result))
    reader.readAsDataURL(file)
  }
  if (value.startsWith("data:")) {
    return (
      <div class="field">
        <span>Image</span>
        <img src={value} alt="Image to send" />
        <button type="button" onClick={() => onChange("")}>
          Clear image
        </button>
      </div>
    )
  }
  return (
    <>
      <label class="field">
        <span>Image URL{isRequired && " (required)"}</span>
        <input type="url" value={value} onInput={({ currentTarget }) => onChange(currentTarget.value.trim())} />
      </label>
      <label class="field">
        <span>Image file</span>
        <input
          type="file"
          accept="image/png,image/jpeg,image/webp,image/gif"
          onChange={({ currentTarget }) => read(currentTarget.files?.[0])}
        />
        {isTooLarge && (
          <small class="problem" role="alert">
            The file is larger than 20 MiB.
          </small>
        )}
      </label>
    </>
  )
}

interface FieldProps {
  readonly param: ListedModel["params"][number]
  readonly isRequired: boolean
  /** Empty if the field is not sent. */
  readonly value: string
  readonly onChange: (value: string) => void
}

/** A parameter of the model. The label is the field of the request. */
const ParamField = (props: FieldProps) => {
  const { onChange, value } = props
  const { default: fallback, key, max, min, options = [], step, type } = props.param
  if (type === "image") return <ImageField {...props} />
  if (type === "boolean") {
    return (
      <label class="check">
        <input
          type="checkbox"
          checked={value === "true"}
          onChange={({ currentTarget }) => onChange(currentTarget.checked ? "true" : "")}
        />{" "}
        <code>{key}</code>
      </label>
    )
  }
  return (
    <label class="field">
      <code>{key}</code>
      {type === "select" ? (
        <select value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
          <option value="">{fallback === undefined ? "Default" : `Default (${fallback})`}</option>
          {options.map((option) => (
            <option key={option} value={option}>
              {option}
            </option>
          ))}
        </select>
      ) : (
        <input
          {...(type === "text" ? {} : { type: "number", min, max, step })}
          placeholder={fallback === undefined ? "" : String(fallback)}
          value={value}
          autocomplete="off"
          onInput={({ currentTarget }) => onChange(currentTarget.value)}
        />
      )}
    </label>
  )
}

/** Code with an image file would be too long to read. */
const maxCodeLength = 200_000

const emptyDraft: Draft = { prompt: "", system: "", params: {} }

const Bench = ({
  apiKey,
  model,
  models
}: {
  readonly apiKey: string
  readonly model: ListedModel
  readonly models: ReadonlyArray<ListedModel>
}) => {
  const [draft, setDraft] = useState<Draft>(emptyDraft)
  // On a phone, the fields would push the message below the page.
  const [isOpen] = useState(() => matchMedia("(min-width: 60rem)").matches)
  const promptId = useId()
  const sent = useStore(sentRequests)
  const isRunning = useStore(runningRequest) !== undefined
  const change = (part: Partial<Draft>) => setDraft((previous) => ({ ...previous, ...part }))
  const isChat = model.surface === "chat"
  const isReady = draft.prompt.trim() !== "" && !isRunning
  const request = requestOf(model, draft, sent)
  const quote = useQuote(apiKey, request, isReady)
  const shownRequest = isReady ? request : sent.at(-1)?.request
  const submit = (event?: Event) => {
    event?.preventDefault()
    if (!isReady) return
    const { prompt } = draft
    // A chat goes on with an empty field. After an error the text returns, unless the user has typed another one.
    if (isChat) change({ prompt: "" })
    const restorePrompt = () => setDraft((now) => (now.prompt === "" ? { ...now, prompt } : now))
    void send(apiKey, request, prompt).then((isAnswered) => (isAnswered ? undefined : restorePrompt()))
  }
  return (
    <>
      <div class="playground">
        <div class="panel fields">
          <ModelField model={model.id} models={models} />
          <details open={isOpen}>
            <summary>Parameters</summary>
            <div class="fields">
              {isChat && (
                <label class="field">
                  <span>System prompt</span>
                  <textarea
                    rows={2}
                    value={draft.system}
                    onInput={({ currentTarget }) => change({ system: currentTarget.value })}
                  />
                </label>
              )}
              {paramsOf(model).map((param) => (
                <ParamField
                  key={param.key}
                  param={param}
                  isRequired={param.key === "image" && model.video?.reference_image === "required"}
                  value={draft.params[param.key] ?? ""}
                  onChange={(value) => change({ params: { ...draft.params, [param.key]: value } })}
                />
              ))}
            </div>
          </details>
        </div>
        <div>
          {sent.length === 0 ? (
            <Empty>Results appear here.</Empty>
          ) : (
            <SentRequestList sent={sent} isRunning={isRunning} />
          )}
          <form class="fields composer" onSubmit={submit}>
            <div class="field">
              <label for={promptId}>{isChat ? "Message" : "Prompt"}</label>
              <textarea
                id={promptId}
                aria-describedby={`${promptId}-hint`}
                rows={3}
                value={draft.prompt}
                onInput={({ currentTarget }) => change({ prompt: currentTarget.value })}
                onKeyDown={(event) => {
                  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit(event)
                }}
              />
              <small id={`${promptId}-hint`} class="soft">
                Ctrl+Enter sends.
              </small>
            </div>
            <div class="send">
              {isRunning ? (
                <button type="button" onClick={() => runningRequest.get()?.abort()}>
                  Stop
                </button>
              ) : (
                <button class="primary" disabled={!isReady}>
                  Send
                </button>
              )}
              {quote && <QuoteText {...quote} />}
            </div>
          </form>
        </div>
      </div>
      {shownRequest && (
        <Section title={isReady ? "Code for this request" : "Code for the last request"}>
          {JSON.stringify(shownRequest).length > maxCodeLength ? (
            <Empty>With an image file, the code is too long to show. To see the code, use an image URL instead.</Empty>
          ) : (
            <RequestSnippets request={shownRequest} />
          )}
        </Section>
      )}
    </>
  )
}

const ModelChoice = ({ apiKey }: { readonly apiKey: string }) => {
  const { error, models } = useModels(apiKey)
  const { model: chosenId } = useRoute().query
  if (error !== undefined) return <ErrorBox error={error} />
  if (models === undefined) return <Loading />
  const model = models.find(({ id }) => id === chosenId) ?? findFirstModel(models)
  if (model === undefined) return <Empty>This key cannot use any model.</Empty>
  return (
    <>
      {chosenId && chosenId !== model.id && (
        <p class="problem" role="alert">
          This key cannot use the model {chosenId}.
        </p>
      )}
      <Bench apiKey={apiKey} model={model} models={models} />
    </>
  )
}

/** Sends requests with an API key and shows their results and charges. */
export const Playground = () => {
  const apiKey = useStore(playgroundKey)
  const hasSent = useStore(sentRequests).length > 0
  return (
    <Page
      title="Playground"
      lead={apiKey && <code class="soft">{shorten(apiKey, 9)}</code>}
      actions={
        <>
          {hasSent && <button onClick={clearSentRequests}>Clear results</button>}
          {apiKey && <button onClick={() => playgroundKey.set(undefined)}>Clear key</button>}
        </>
      }
    >
      {apiKey ? <ModelChoice apiKey={apiKey} /> : <KeyChoice />}
    </Page>
  )
}
