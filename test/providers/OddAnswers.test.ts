import { oddAnswersContract } from "../contracts/OddAnswers.ts"
import { chatWires } from "./ChatWires.ts"

chatWires.forEach(oddAnswersContract)
