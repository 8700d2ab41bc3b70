import { TextField, textOf } from "../../parts/Field.tsx"
import { WriteButton } from "../../parts/WriteButton.tsx"
import type { RouteRecord } from "./RouteRecord.ts"

interface Of {
  readonly route: RouteRecord
  readonly onDone: () => void
}

const Disable = ({ onDone, route: { id } }: Of) => (
  <WriteButton
    isPlain
    label="Disable"
    of={id}
    isDangerous
    path="/routes/disable"
    body={(form) => ({ route: id, note: textOf(form, "note") })}
    done={`${id} gets no new requests.`}
    onDone={onDone}
  >
    <p>Every instance sends it no new requests within two seconds, until it is enabled. What it is doing goes on.</p>
    <TextField name="note" label="Note" hint="Why, for those who find it disabled." />
  </WriteButton>
)

const Enable = ({ onDone, route: { id } }: Of) => (
  <WriteButton
    isPlain
    label="Enable"
    of={id}
    path="/routes/enable"
    body={() => ({ route: id })}
    done={`${id} gets requests again.`}
    onDone={onDone}
  >
    <p>Every instance sends it requests again within two seconds.</p>
  </WriteButton>
)

const Reset = ({ onDone, route: { id } }: Of) => (
  <WriteButton
    isPlain
    label="Reset"
    of={id}
    path="/routes/reset"
    body={() => ({ route: id })}
    done={`The failures of ${id} are forgotten.`}
    onDone={onDone}
  >
    <p>Every instance closes its circuit and forgets its failures within two seconds.</p>
  </WriteButton>
)

export const RouteActions = (of: Of) => (
  <div class="row-actions">
    {of.route.disabled_at === null ? <Disable {...of} /> : <Enable {...of} />}
    <Reset {...of} />
  </div>
)
