import { chatAdapterContract } from "../contracts/ChatAdapter.ts"
import { harnesses } from "./OpenAiResponsesHosts.ts"

for (const harness of harnesses) chatAdapterContract(harness)
