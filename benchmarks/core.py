"""BSUFS at 1440 x 1024 with 20 components against its rivals."""

import warnings

import numpy as np
import pymanopt
from fastcan import FastCan
from pymanopt.manifolds import Stiefel
from pymanopt.optimizers import TrustRegions
from sklearn.decomposition import PCA, SparsePCA
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks.timing import best_seconds, coil20_or_stand_in, markdown_table
from bsufs import BSUFS
from bsufs.penalties import ElementPenalty, RowPenalty
from bsufs.scatter import make_scatter
from bsufs.solvers.alternation import Coupling, Problem, proximal_alternation

N_COMPONENTS = 20
N_FEATURES = 100


class PymanoptStep:
    """The W-step by pymanopt's trust region with the exact Hessian, as a rival would write it."""

    def __init__(self, S, shape):
        self.S = S
        self.manifold = Stiefel(*shape)

    def __call__(self, scatter, W, SW, L):
        """Return the frame where pymanopt ends, and its product with S."""
        S = self.S

        @pymanopt.function.numpy(self.manifold)
        def cost(frame):
            return -np.vdot(frame, S @ frame) - np.vdot(L, frame)

        @pymanopt.function.numpy(self.manifold)
        def gradient(frame):
            return -2.0 * (S @ frame) - L

        @pymanopt.function.numpy(self.manifold)
        def hessian(frame, tangent):
            return -2.0 * (S @ tangent)

        problem = pymanopt.Problem(
            self.manifold, cost, euclidean_gradient=gradient, euclidean_hessian=hessian
        )
        optimizer = TrustRegions(verbosity=0, min_gradient_norm=1e-6, max_iterations=100)
        frame = optimizer.run(problem, initial_point=W).point
        return frame, scatter @ frame


def paper_problem(scatter, norm, setting):
    """Return the paper's problem with the authors' betas, or with beta = ||S||_2."""
    if setting == "authors":
        beta_row, beta_element, tau = 1e6, 100.0, 1e-3
        lambda_row, lambda_element = 1e4, 1e6
    else:
        beta_row = beta_element = norm
        tau = 1e-3 * norm
        # Thresholds of half an average row and half an average element, at p = q = 2/3.
        d = scatter.shape[0]
        unit = (128 / 27) ** 0.25
        lambda_row = (0.5 * np.sqrt(N_COMPONENTS / d) / unit) ** (4 / 3) * (beta_row + tau)
        lambda_element = (0.5 / np.sqrt(d) / unit) ** (4 / 3) * (beta_element + tau)
    return Problem(
        scatter,
        Coupling(RowPenalty(lambda_row, 2 / 3), beta_row, tau),
        Coupling(ElementPenalty(lambda_element, 2 / 3), beta_element, tau),
        tau,
    )


def against_pymanopt(scatter, W, norm, setting, outer):
    """Return seconds per outer iteration of both W-steps, and both objectives."""
    problem = paper_problem(scatter, norm, setting)
    # The first W-step from the principal components has nothing to do; both start after it.
    first = proximal_alternation(problem, W, max_iter=1, tol=0.0)
    W, copies = first.W, {"U": first.U, "V": first.V}
    rival_step = PymanoptStep(scatter.S, W.shape)
    rival_seconds, rival = best_seconds(
        lambda: proximal_alternation(
            problem, W, **copies, w_step=rival_step, max_iter=outer, tol=0.0
        ),
        repeats=1,
    )
    ours_seconds, _ = best_seconds(
        lambda: proximal_alternation(problem, W, **copies, max_iter=30, tol=0.0), repeats=3
    )
    ratio = (rival_seconds / outer) / (ours_seconds / 30)
    # As many of our iterations as fit into a tenth of the rival's time.
    budget = max(outer, int(0.1 * outer * ratio))
    ours = proximal_alternation(problem, W, **copies, max_iter=budget, tol=0.0)
    return {
        "rival": rival_seconds / outer,
        "ours": ours_seconds / 30,
        "ratio": ratio,
        "rival objective": rival.objective_history[-1],
        "our objective": ours.objective_history[-1],
        "our iterations": budget,
        "outer": outer,
    }


def run():
    """Measure everything once with the present number of threads."""
    name, X = coil20_or_stand_in()
    rows = []

    def report(what, seconds, ours, target=""):
        ratio = seconds / ours
        rows.append((what, f"{seconds:.3f}", f"{ratio:.1f}", target))

    selector = BSUFS(N_FEATURES, n_components=N_COMPONENTS)
    ours, _ = best_seconds(lambda: selector.fit(X), repeats=5)
    report(f"BSUFS, default settings, k = {N_FEATURES}", ours, ours)

    def start():
        return make_scatter(X).leading_eigenvectors(N_COMPONENTS)

    pca, (values, W) = best_seconds(start, repeats=5)
    rows.append(("the truncated PCA it starts from", f"{pca:.3f}", f"{pca / ours:.2f}", ">= 0.20"))
    sklearn_pca, _ = best_seconds(lambda: PCA(N_COMPONENTS).fit(X))
    rows.append(("scikit-learn PCA", f"{sklearn_pca:.3f}", f"{sklearn_pca / ours:.2f}", ""))

    scores = PCA(N_COMPONENTS).fit_transform(X)
    fastcan, _ = best_seconds(lambda: FastCan(N_FEATURES, verbose=0).fit(X, scores), repeats=1)
    report("fastcan on 20 principal components", fastcan, ours, ">= 5")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        sparse_pca, _ = best_seconds(
            lambda: SparsePCA(N_COMPONENTS, method="cd", random_state=0).fit(X), repeats=1
        )
    report("scikit-learn SparsePCA (coordinate descent)", sparse_pca, ours, ">= 50")

    scatter = make_scatter(X)
    duels = {
        setting: against_pymanopt(scatter, W, values[0], setting, outer)
        for setting, outer in (("authors", 20), ("norm", 10))
    }
    return name, rows, duels


def main():
    for label, limit in (("one BLAS thread", 1), ("default threads", None)):
        with threadpool_limits(limit):
            name, rows, duels = run()
        print(f"\n### {name}, {label}\n")
        print(markdown_table(("what", "seconds", "ratio to BSUFS", "target"), rows))
        print("\nPer outer iteration of the paper's alternation, fixed weights, p = q = 2/3:\n")
        table = []
        for setting, target in (("authors", ">= 20"), ("norm", ">= 300")):
            duel = duels[setting]
            table.append(
                (
                    "the authors' betas" if setting == "authors" else "beta = norm of S",
                    f"{1e3 * duel['rival']:.1f}",
                    f"{1e3 * duel['ours']:.2f}",
                    f"{duel['ratio']:.0f}",
                    target,
                    f"{duel['rival objective']:.6g} ({duel['outer']} iterations)",
                    f"{duel['our objective']:.6g} ({duel['our iterations']} iterations)",
                )
            )
        header = ("weights", "pymanopt, ms", "polar, ms", "ratio", "target", "objective", "ours")
        print(markdown_table(header, table))


if __name__ == "__main__":
    main()
