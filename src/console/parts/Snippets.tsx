import { useId, useRef, useState } from "preact/hooks"
import {
  type ApiRequest,
  exampleRequest,
  type Language,
  languages,
  type Surface,
  snippets
} from "../format/Snippets.ts"
import { useBaseUrl } from "../SignedIn.ts"
import { makeStore, useStore } from "../Store.ts"

/** The language that the user chose last, for all snippets. */
const currentLanguage = makeStore<Language>("curl")

/** A request as a program in the chosen language. Copying selects the code, in case the browser denies the clipboard. */
export const RequestSnippets = ({
  apiKey,
  request
}: {
  readonly request: ApiRequest
  /** The default is an environment variable. */
  readonly apiKey?: string | undefined
}) => {
  const language = useStore(currentLanguage)
  const text = snippets[language](request, { baseUrl: useBaseUrl(), apiKey })
  const [copiedText, setCopiedText] = useState<string>()
  const code = useRef<HTMLElement>(null)
  const group = useId()
  const copy = async () => {
    if (code.current !== null) getSelection()?.selectAllChildren(code.current)
    if (!("clipboard" in navigator)) return
    await navigator.clipboard.writeText(text).then(
      () => setCopiedText(text),
      () => undefined
    )
  }
  return (
    <div class="snippets">
      <div class="snippets-head">
        <fieldset class="switch">
          <legend>Language</legend>
          {languages.map((option) => (
            <label key={option}>
              <input
                type="radio"
                name={group}
                checked={language === option}
                onChange={() => currentLanguage.set(option)}
              />
              <span>{option}</span>
            </label>
          ))}
        </fieldset>
        <button type="button" aria-label={`Copy as ${language}`} onClick={() => void copy()}>
          {copiedText === text ? "Copied" : "Copy"}
        </button>
      </div>
      <pre tabIndex={0}>
        <code ref={code}>{text}</code>
      </pre>
    </div>
  )
}

/** A small program that calls the model. Without a key it reads the key from an environment variable. */
export const Snippets = ({
  apiKey,
  model,
  surface
}: {
  readonly model: string
  readonly surface: Surface
  readonly apiKey?: string
}) => <RequestSnippets request={exampleRequest(model, surface)} apiKey={apiKey} />
