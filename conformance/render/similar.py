"""Public reports of faults like the one found: clause -> (where, what was reported there)."""

SIMILAR: dict[str, tuple[tuple[str, str], ...]] = {
    "ANSWER": (("vllm-ascend #14283", "a negative number of blocks was requested after a trimmed hit"),),
    "TOTAL": (("nano-vllm PR 233", "the runner indexed past the block table after a preemption"),),
    "YES-MEANS-YES": (
        ("vLLM PR 46892", "the room check counted k blocks, the allocation took k + 1"),
        ("vLLM PR 6849", "cached blocks were counted as available and as needing no room"),
    ),
    "NO-MEANS-NO": (
        ("Atlas PR 1114", "'exhausted' on a pool full of evictable blocks"),
        ("TensorRT-LLM PR 16173", "at an exact multiple of the block size the first chunk never fitted"),
    ),
    "FRESH": (
        ("FastDeploy PR 3710", "a block given back twice was handed to two owners"),
        ("TensorRT-LLM PR 14937", "a block was issued while it was in use"),
    ),
    "COVERS": (("nano-vllm PR 211", "the hit grew inside the allocation, after the token budget was fixed"),),
    "STABLE": (("mini-sglang PR 142", "pages of a running sequence were freed while its table named them"),),
    "ATOMIC": (
        ("vLLM PR 11565", "hits were pinned before the room check, and stayed so after the refusal"),
        ("Atlas PR 373", "a failed admission never dropped its prefix references"),
    ),
    "RELEASE": (
        ("MinivLLM PR 84", "a count that started at 0 went to -1 on release"),
        ("SGLang PR 18694", "preemption freed a sequence that had freed itself"),
    ),
    "NO-LEAK": (
        ("vmlx PR 68", "finished sequences kept their references"),
        ("sglang-jax PR 1000", "the tail page leaked on each chunk"),
    ),
    "PARTITION": (
        ("SGLang #5221", "a page was freed that another entry still named"),
        ("TensorRT-LLM PR 12834", "the free count exceeded the size of the pool"),
    ),
    "REFCOUNT": (
        ("Atlas PR 373", "eviction set the count to zero instead of dropping one reference"),
        ("MinivLLM PR 84", "a fresh block had reference count 0"),
    ),
    "CONTENT": (
        ("nano-vllm #163", "the index entry of a recycled block was left in the index"),
        ("vLLM PR 4761", "an evicted block stayed in the index"),
        ("OpenVINO GenAI #3722", "a hash collision was served without an error"),
    ),
    "COMPUTED": (
        ("nano-vllm #208", "blocks were registered at allocation, before the forward pass"),
        ("TGI PR 2489", "blocks of a dropped request entered the prefix cache unfilled"),
        ("vLLM PR 29387", "a key was published when the step was scheduled"),
    ),
    "NO-CLOBBER": (
        ("vLLM PR 45357", "a step in flight wrote into blocks that were issued again"),
        ("Atlas #1193", "a partly filled tail block was shared without a copy"),
    ),
    "PROGRESS": (
        ("nano-vllm #144", "a prompt of full blocks, all cached, left no token to compute"),
        ("vLLM #8268", "a full hit with prompt logprobs tripped an assertion"),
    ),
    "ALIGNED": (("vLLM PR 11186", "recomputing the last token broke the count of whole blocks"),),
    "INDEX-BOUNDED": (("nanovllm-voxcpm #58", "the index grew with every prefix ever seen"),),
    "INDEX-MATCH": (
        ("vLLM PR 44237", "a recycled block could keep its key"),
        ("kvcached #362", "eviction did not clear the key of the block"),
    ),
    "INDEX-TOKENS": (("OpenVINO GenAI #3722", "a block store kept the hash, never the tokens"),),
    "INDEX-CHAIN": (
        ("nano-vllm PR 153", "the tokens of the block were compared, its prefix was not"),
        ("vLLM PR 11186", "the chain of keys broke after a recomputed last token"),
    ),
    "NO-LOST-HIT": (("vLLM PR 19006", "publication lagged behind what was computed"),),
    "SURVIVES-RELEASE": (
        ("nanovllm-voxcpm PR 62", "dropping the key on release ended all reuse of free blocks"),
        ("ROCm ATOM PR 902", "a hit on a free block reset it and destroyed the entry"),
    ),
    "TWIN": (("vLLM PR 44237", "two blocks of one key, of which one was recycled"),),
    "TAIL-FIRST": (("llm-d-inference-sim #704", "the head was evicted before the tail in 144 of 200 runs"),),
    "FIFO": (("vLLM PR 5411", "an access-time update broke the order of eviction"),),
    "OVERSIZED": (("vLLM #55800", "a request waited for ever at 0 % use"),),
}


def similar_reports(clause: str) -> tuple[tuple[str, str], ...]:
    """Public reports like a breach of `clause`; empty where none is known."""
    return SIMILAR.get(clause, ())
