import { chatAdapterContract } from "../contracts/ChatAdapter.ts"
import { harnesses } from "./GeminiHosts.ts"

for (const harness of harnesses) chatAdapterContract(harness)
