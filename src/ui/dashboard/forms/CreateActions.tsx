/** The buttons that end a form for something new. */
import { Button } from "../components/Button.tsx"
import { Actions } from "../components/Dialog.tsx"
import { everywhere } from "../text/everywhere.ts"
import { useText } from "../text/Language.tsx"
import { DraftState } from "./DraftNotes.tsx"
import type { Fields } from "./merge.ts"
import type { Draft } from "./useDraft.ts"

interface Props<A extends Fields> {
  readonly draft: Draft<A>
  readonly busy: boolean
  readonly onClose: () => void
}

export const CreateActions = <A extends Fields>({ draft, busy, onClose }: Props<A>) => {
  const t = useText(everywhere)
  return (
    <Actions>
      <DraftState draft={draft} />
      <Button onClick={onClose}>{t.cancel}</Button>
      <Button kind="primary" type="submit" busy={busy}>
        {t.create}
      </Button>
    </Actions>
  )
}
