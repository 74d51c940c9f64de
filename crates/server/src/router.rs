//! Paths to operations, by the table.

use std::sync::Arc;

use abide_api::operations::{Method, OPERATIONS};
use abide_api::{ErrorCode, Problem};
use axum::Router;
use axum::extract::Request;
use axum::routing::{MethodFilter, MethodRouter, on};

use crate::app::App;
use crate::{gate, problems};

pub(crate) fn router(app: &Arc<App>) -> Router {
    let mut router = Router::new();
    for operation in OPERATIONS {
        let filter = match operation.method {
            Method::Get => MethodFilter::GET,
            Method::Post => MethodFilter::POST,
            Method::Put => MethodFilter::PUT,
            Method::Patch => MethodFilter::PATCH,
            Method::Delete => MethodFilter::DELETE,
        };
        let app = Arc::clone(app);
        let route: MethodRouter = on(filter, move |request: Request| gate::pass(Arc::clone(&app), operation, request));
        router = router.route(operation.path, route);
    }
    router
        .fallback(|| async {
            let problem = Problem::new(ErrorCode::NoRoute, "there is nothing at this path");
            problems::response(&problem.hint("GET /openapi.json says what there is"))
        })
        .method_not_allowed_fallback(|| async {
            let problem = Problem::new(ErrorCode::WrongMethod, "this path does not take that method");
            problems::response(&problem.hint("the Allow header says which it takes"))
        })
}
