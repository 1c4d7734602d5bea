/** A button that saves a turn's question and its cited sources as a test case of the agent. */
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { testCaseFromRun, testCases } from "../../api/TestCases.ts"
import { texts, useText } from "../../text/Language.tsx"
import { Button } from "../Button.tsx"
import { Problem } from "../Problem.tsx"

const words = texts(
  { save: "Save as test case", saved: "Saved as test case" },
  { save: "Als Testfall speichern", saved: "Als Testfall gespeichert" }
)

interface Props {
  readonly agentId: string
  readonly runId: string
}

/** Use the run's id as the React key, because the state belongs to one run. */
export const SaveTestCase = ({ agentId, runId }: Props) => {
  const t = useText(words)
  const queries = useQueryClient()
  const attempt = useMutation({
    mutationFn: () => testCaseFromRun(agentId, runId),
    onSuccess: () => queries.invalidateQueries({ queryKey: testCases(agentId).queryKey })
  })
  return (
    <>
      {attempt.error === null ? null : <Problem problem={attempt.error} />}
      {attempt.isSuccess ? (
        <p role="status">{t.saved}</p>
      ) : (
        <Button kind="quiet" busy={attempt.isPending} onClick={() => attempt.mutate()}>
          {t.save}
        </Button>
      )}
    </>
  )
}
