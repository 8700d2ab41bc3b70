import { useId } from "preact/hooks"

/** The form is sent only with one of the answers. */
export const ConfirmField = ({
  answers,
  label
}: {
  readonly label: string
  readonly answers: ReadonlyArray<string>
}) => {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        required
        autocomplete="off"
        onInput={({ currentTarget }) =>
          currentTarget.setCustomValidity(answers.includes(currentTarget.value.trim()) ? "" : `${label}.`)
        }
      />
    </div>
  )
}
