import { commonTexts } from "../text/commonTexts.ts"
import { useText } from "../text/Language.tsx"
import { Button } from "./Button.tsx"
import { Problem } from "./Problem.tsx"

interface Props {
  readonly query: {
    readonly hasNextPage: boolean
    readonly isFetchingNextPage: boolean
    readonly isFetchNextPageError: boolean
    readonly error: unknown
    readonly fetchNextPage: () => unknown
  }
}

/** A button that loads the next page of a list. Nothing after the last page. */
export const LoadMore = ({ query }: Props) => {
  const t = useText(commonTexts)
  if (!query.hasNextPage) return null
  return (
    <div>
      {query.isFetchNextPageError ? <Problem problem={query.error} /> : null}
      <Button busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
        {t.loadMore}
      </Button>
    </div>
  )
}
