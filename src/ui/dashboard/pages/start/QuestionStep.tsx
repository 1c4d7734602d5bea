/** Step three: buttons with questions that the content answers. */
import { useMutation, useQuery } from "@tanstack/react-query"
import { useLocation } from "wouter"
import type { User } from "../../api/Session.ts"
import { questions } from "../../api/Widgets.ts"
import { LoadErrorMessage } from "../../components/Boundary.tsx"
import { Button } from "../../components/Button.tsx"
import { LoadError } from "../../components/Page.tsx"
import { commonTexts } from "../../text/commonTexts.ts"
import { texts, useText } from "../../text/Language.tsx"
import css from "./Start.module.css"

const words = texts(
  {
    lead: "These are made from what was read. Press one to see the answer and where it comes from.",
    waiting: "As soon as something has been read, there are questions here.",
    own: "Ask something else"
  },
  {
    lead: "Sie sind aus dem Gelesenen gemacht. Ein Druck zeigt die Antwort und woher sie kommt.",
    waiting: "Sobald etwas gelesen ist, stehen hier Fragen.",
    own: "Etwas anderes fragen"
  }
)

/** Number of placeholders while the questions load. */
const placeholderCount = 3

interface Props {
  readonly agentId: string
  readonly user: User
  readonly hasContent: boolean
}

export const QuestionStep = ({ agentId, hasContent, user }: Props) => {
  const t = useText(words)
  const common = useText(commonTexts)
  const [, navigate] = useLocation()
  const chatPath = `/agents/${agentId}/try`
  const query = useQuery({ ...questions(agentId), enabled: hasContent })
  const ask = useMutation({
    // The chat code is large, and most visits of this page do not need it.
    mutationFn: (_question: string) => import("../workbench/TestChat.ts"),
    onSuccess: ({ testChatOf }, question) => {
      testChatOf(user.id, agentId).send(question, [])
      navigate(chatPath)
    }
  })
  if (!hasContent) return <p className={css["soft"]}>{t.waiting}</p>
  if (query.data === undefined && !query.isPending) return <LoadError query={query} />
  const loadedQuestions = query.data
  return (
    <>
      {loadedQuestions?.length === 0 ? null : <p className={css["soft"]}>{t.lead}</p>}
      {loadedQuestions === undefined ? (
        <div role="status" className={css["questions"]}>
          <span className="visually-hidden">{common.loading}</span>
          {Array.from({ length: placeholderCount }, (_, index) => (
            <span key={index} aria-hidden className={css["question"]} />
          ))}
        </div>
      ) : (
        // The questions are in the language of the content, which is unknown.
        <ul className={css["questions"]} lang="">
          {loadedQuestions.map((question) => (
            <li key={question}>
              <Button busy={ask.isPending && ask.variables === question} onClick={() => ask.mutate(question)}>
                {question}
              </Button>
            </li>
          ))}
        </ul>
      )}
      {ask.isError ? <LoadErrorMessage /> : null}
      <div>
        <Button kind="quiet" onClick={() => navigate(chatPath)}>
          {t.own}
        </Button>
      </div>
    </>
  )
}
