import { render } from "preact"
import { App } from "./App.tsx"
import { resumeSession } from "./Session.ts"

void resumeSession()
render(<App />, document.body)
